"""Ray clusters: the engine, and runs that live there by themselves."""
