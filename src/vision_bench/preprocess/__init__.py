"""Frames to what a vision encoder takes: sizes, patches, tokens; the stock arithmetic; the same bits, sooner."""
