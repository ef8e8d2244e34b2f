"""Several runs as one: seeds, configurations, and sweeps of options."""
