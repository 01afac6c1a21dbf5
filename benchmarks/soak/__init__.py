"""What the gateway is like after thousands of faults: `python -m benchmarks.soak`."""
