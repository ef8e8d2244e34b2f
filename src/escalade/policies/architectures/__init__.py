"""Named networks, and their registry."""
