"""From capture to ring over WebRTC, stock aiortc and ours: `python -m benchmarks.live`."""
