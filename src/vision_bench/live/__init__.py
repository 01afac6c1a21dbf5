"""Frames that arrive while we watch: streams, their bounded history, and the frames that a question names."""
