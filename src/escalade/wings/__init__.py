"""Features that a run can do without: each is whole in its folder, and no wing imports another."""
