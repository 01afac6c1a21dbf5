"""A server of ``WS /v1/realtime/video`` that renders on a CPU and keeps declared times."""
