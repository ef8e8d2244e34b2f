"""Recorders that give the numbers of runs to other programs: TensorBoard, and Weights & Biases."""
