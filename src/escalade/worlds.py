"""Batched worlds in torch: classic control, and the base of worlds of your own."""

from escalade.wings.worlds.classic import Acrobot, CartPole, MountainCar, Pendulum, TorchWorld
from escalade.wings.worlds.spring_walker import SpringWalker

__all__ = ["Acrobot", "CartPole", "MountainCar", "Pendulum", "SpringWalker", "TorchWorld"]
