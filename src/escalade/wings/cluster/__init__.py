"""Ray clusters: the engine, and detached runs."""
