"""Optimization of functions of a vector, with bounds, integers, constraints, restarts and stopping rules."""
