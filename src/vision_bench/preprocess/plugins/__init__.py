"""Where people use it: switches that put our preprocessing into transformers and into vLLM."""
