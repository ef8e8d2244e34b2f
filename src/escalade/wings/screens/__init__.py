"""A run as it goes on, drawn again and again: in a panel on a terminal, in a notebook's cell."""
