"""Series of runs: several seeds or configurations, and sweeps of options."""
