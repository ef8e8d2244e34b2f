"""What users call: train, resume, evaluate, render, evolve, bench."""
