"""Generated video, measured as a viewer feels it: workload, target, and numbers from records."""
