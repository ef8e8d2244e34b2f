"""A worker's part in evolving a module or optimising a function: compute the fitness of members."""
