"""Recorders for experiment trackers: TensorBoard, and Weights & Biases."""
