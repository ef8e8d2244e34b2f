"""The forward pass of a whole population: layers, products and memories of many members at once."""
