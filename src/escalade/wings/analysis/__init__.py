"""Finished runs: curves, comparisons, scores, reports, and a run watched from outside."""
