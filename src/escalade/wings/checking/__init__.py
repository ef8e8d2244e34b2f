"""Environments and strategies before a run: which there are, whether they can be trained on, and how fast."""
