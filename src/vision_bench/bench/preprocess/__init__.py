"""Kind 3: the preprocessor under load. A queue, workers behind it, and what a request waits for each."""
