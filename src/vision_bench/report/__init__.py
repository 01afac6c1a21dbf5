"""A run folder or an analysis, drawn for people."""
