"""Strategies for custom loops: with a surrogate gradient, or over windows of a long unroll."""
