"""The envelope study: the same labelled set over every envelope, accuracy against latency and tokens."""
