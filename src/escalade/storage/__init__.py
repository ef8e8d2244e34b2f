"""Run folders, checkpoints and atomic files."""
