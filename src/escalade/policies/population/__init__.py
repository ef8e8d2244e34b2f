"""Forward pass of a whole population: layers, products and states of many members at once."""
