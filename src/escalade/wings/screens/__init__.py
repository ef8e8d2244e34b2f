"""Live displays of a run: a panel on a terminal, and a plot in a notebook."""
