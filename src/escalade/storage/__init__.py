"""Files that survive."""
