"""Analysis of runs: curves, comparisons, scores, reports, and a live view of a run in another process."""
