"""A worker's part in evolving a module or optimizing a function: compute the fitness of members."""
