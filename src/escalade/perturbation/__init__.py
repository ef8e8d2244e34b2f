"""Sources of noise, and how a member is rebuilt from an address."""

from escalade.perturbation.address import Stream, gumbels, hash64, normals, seeds
from escalade.perturbation.low_rank import LowRank
from escalade.perturbation.population import (
    CenterPopulation,
    DensePopulation,
    Draws,
    GaussianPopulation,
    NoiseSource,
    Population,
    shared_center,
    write_all,
)
from escalade.perturbation.slices import weighted_noise_sum, weighted_square_sum
from escalade.perturbation.table import NoiseTable, table_size

__all__ = [
    "CenterPopulation",
    "DensePopulation",
    "Draws",
    "GaussianPopulation",
    "LowRank",
    "NoiseSource",
    "NoiseTable",
    "Population",
    "Stream",
    "gumbels",
    "hash64",
    "normals",
    "seeds",
    "shared_center",
    "table_size",
    "weighted_noise_sum",
    "weighted_square_sum",
    "write_all",
]
