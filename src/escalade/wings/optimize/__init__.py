"""Functions of a vector: searches with bounds, integers, restarts and rules to stop."""
