"""Strategies for loops of one's own: with a surrogate gradient, or over windows of a long unroll."""
