"""Vectors loaded into a forward pass as members of a dense population."""

import numpy as np

from escalade.perturbation import DensePopulation


def load(forward, row, vector, seed=0):
    """Start an episode in ``row`` with the parameters ``vector``, shape (dimension,)."""
    forward.load(row, DensePopulation(np.asarray(vector, np.float32)[None]), 0, seed)


def fill(forward, members):
    """Start an episode in each of the first rows with the parameters of its member."""
    for row, vector in enumerate(members):
        load(forward, row, vector)
