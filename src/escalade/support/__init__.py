"""Small helpers that every package may import, and that import no other package."""
