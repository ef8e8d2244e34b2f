"""Sources of noise, and populations whose members are rebuilt from addresses."""

from escalade.perturbation.address import Stream as Stream
from escalade.perturbation.address import gumbels as gumbels
from escalade.perturbation.address import hash64 as hash64
from escalade.perturbation.address import normals as normals
from escalade.perturbation.address import seeds as seeds
from escalade.perturbation.fresh import FreshNoise as FreshNoise
from escalade.perturbation.fresh import usual_noise as usual_noise
from escalade.perturbation.low_rank import LowRank as LowRank
from escalade.perturbation.population import CenterPopulation as CenterPopulation
from escalade.perturbation.population import DensePopulation as DensePopulation
from escalade.perturbation.population import Draws as Draws
from escalade.perturbation.population import GaussianPopulation as GaussianPopulation
from escalade.perturbation.population import NoiseSource as NoiseSource
from escalade.perturbation.population import Population as Population
from escalade.perturbation.population import shared_center as shared_center
from escalade.perturbation.population import write_all as write_all
from escalade.perturbation.table import NoiseTable as NoiseTable
from escalade.perturbation.table import table_size as table_size
