"""The global random generators are seeded inside the block and restored afterwards."""

import random
import subprocess
import sys

import numpy as np
import torch

from escalade.support.generators import generators_seeded


def drawn():
    return random.random(), np.random.rand(), float(torch.rand(()))


def test_the_random_generators_are_restored():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = [drawn() for _ in range(2)]
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    found = [drawn()]
    with generators_seeded(5):
        inside = drawn()
    found.append(drawn())
    assert found == expected
    with generators_seeded(5):
        assert drawn() == inside


FIRST_CALLS = """
import random, numpy, torch
state = lambda: (random.getstate(), str(numpy.random.get_state()), torch.get_rng_state().tolist())
module, before = torch.nn.Linear(2, 1), None
before = state()
import escalade
escalade.optimize(lambda x: (x**2).sum(), numpy.zeros(2), budget=12, verbose=True)
assert state() == before, "optimize"
escalade.evolve(module, lambda module: float(module.weight.sum()), population=4, generations=1)
assert state() == before, "evolve"
"""


def test_the_first_call_in_a_process_does_not_touch_the_generators():
    subprocess.run([sys.executable, "-c", FIRST_CALLS], check=True, stdout=subprocess.DEVNULL)
