"""Members in, episode results out."""
