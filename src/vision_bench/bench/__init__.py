"""Everything measured: workloads, targets, records, and what is computed from them."""
