"""Environments that show pixels: frames, Atari, and the emulator's own vector environment."""
