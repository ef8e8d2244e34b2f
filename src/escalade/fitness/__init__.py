"""A worker's part in evolving a module: members in, fitness out."""
