"""What crosses ``WS /v1/realtime/video``: the arithmetic of chunks and frames, and the messages of both sides."""
