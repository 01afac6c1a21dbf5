"""What is asked about a clip and what comes back."""
