"""The named networks, and an entry in the registry for each."""
