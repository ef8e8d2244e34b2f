"""Image observations: processing of frames, Atari games and their backend."""
