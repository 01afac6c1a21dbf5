"""A model that keeps declared latencies: its settings, its clock, its words."""
