"""Rollouts: run the episodes of a generation's members."""
