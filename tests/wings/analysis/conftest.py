"""Runs shared by several tests."""

import pytest

import escalade

OPTIONS = {"preset": None, "verbose": False, "policy": "linear", "population": 4, "workers": 0}
OPTIONS |= {"generations": 4, "eval_every": 1, "eval_episodes": 2, "max_episode_steps": 20}


@pytest.fixture(scope="session")
def sigmas(museum):
    """A folder of runs: two seeds for each of two sigmas."""

    def make(folder):
        for sigma in (0.1, 0.5):
            for seed in (1, 2):
                place = folder / f"{sigma}" / f"seed{seed}"
                escalade.train("CartPole-v1", seed=seed, run_dir=place, sigma=sigma, **OPTIONS)

    return museum.show("two seeds of two sigmas", make)
