"""Construction of strategies from options."""

import numpy as np
import pytest
import torch

from escalade.cli.main import main
from escalade.config.options import Config
from escalade.perturbation import NoiseTable
from escalade.training.parts import make_strategy

TABLE = NoiseTable(1, 4096)


def test_sgd_velocity_is_a_mean_of_gradients_from_the_first_step():
    sgd = {"optimizer": "sgd", "momentum": 0.9}
    config = Config(env="X-v0", strategy="openai-es", strategy_options=sgd, lr=0.5, population=8)
    strategy = make_strategy(config, np.zeros(3, np.float32), TABLE)
    gradients = torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.1, 4.0], [-1.0, 0.0, 2.0]])
    velocity, expected = torch.zeros(3), torch.zeros(3)
    for gradient in gradients:
        strategy.optimizer.step(gradient.clone(), strategy.lr)
        velocity = 0.9 * velocity + 0.1 * gradient
        expected -= 0.5 * velocity
        torch.testing.assert_close(strategy.center, expected)


@pytest.mark.parametrize(
    ("strategy", "shaping"),
    [("openai-es", "centered_ranks"), ("pgpe", "centered_ranks"), ("snes", "nes_utilities")],
)
def test_default_shaping_depends_on_the_strategy(strategy, shaping):
    def made(**options):
        config = Config(env="X-v0", strategy=strategy, population=8, strategy_options=options)
        return make_strategy(config, np.zeros(3, np.float32), TABLE)

    assert made().shaping.__name__ == shaping
    assert made(shaping="sign").shaping.__name__ == "sign"


def test_cem_accepts_a_small_population_if_the_elite_has_two_members(tmp_path, capsys):
    given = f"train tests.environments:Walk-v0 --preset none --workers 0 --run-dir {tmp_path / 'run'}"
    given += " --generations 2 --population"
    for more, message in (
        (
            "6 --strategy cem",
            "--strategy cem: elite 0.2 of a population of 6 leaves 1, but at least 2 are needed; use",
        ),
        ("3 --strategy cem:elite=0.5", "--strategy cem: elite 0.5 of a population of 3 leaves 1"),
        ("1 --strategy cem:elite=1", "--population 1 must be at least 2"),
    ):
        assert main([*given.split(), *more.split()]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
    assert main([*given.split(), "6", "--strategy", "cem:elite=0.5"]) == 0
