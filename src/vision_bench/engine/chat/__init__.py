"""A chat-completions server with two models: one perceives, one keeps declared latencies."""
