"""The thin ASGI service in front of one expensive GPU."""
