"""The functions that users call: train, resume, evaluate, render, evolve, bench."""
