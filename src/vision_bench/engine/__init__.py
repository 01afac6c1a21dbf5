"""Servers that stand in for a GPU and speak the same wire as vLLM."""
