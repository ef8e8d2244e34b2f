"""The named networks: one file each, and one entry in the registry."""
