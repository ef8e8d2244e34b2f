"""Small helpers that every room may use, and that use no room."""
