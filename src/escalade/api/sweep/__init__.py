"""A search for options: many trials, each an ordinary run, suggested and ended early by Optuna."""
