"""A worker's part in evolving a module or optimising a function: members in, fitness out."""
