"""Evolve any ``torch.nn.Module`` with any fitness function."""

from escalade.evolution.modules import evolve, load_evolved
from escalade.evolution.records import Evolution, Generation, View

__all__ = ["Evolution", "Generation", "View", "evolve", "load_evolved"]
