"""Option names from other libraries, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from escalade.errors import nearest

SYNONYMS: Final[dict[str, str]] = {
    "learning_rate": "lr",
    "popsize": "population",
    "pop_size": "population",
    "population_size": "population",
    "noise_std": "sigma",
    "noise_stdev": "sigma",
    "algo": "strategy",
    "algorithm": "strategy",
    "network": "policy",
    "model": "policy",
    "wandb": "recorder",
    "tensorboard": "recorder",
    "logger": "recorder",
    "early_stop": "target_return",
    "early_stopping": "target_return",
    "total_timesteps": "env_steps",
    "timesteps": "env_steps",
    "epochs": "generations",
    "iterations": "generations",
    "num_workers": "workers",
    "n_jobs": "workers",
    "save": "run_dir",
    "num_envs": "workers",
    "n_envs": "workers",
}
"""Words of other programs, and the options that they mean here."""


OF_STRATEGIES: Final[dict[str, str]] = {
    "top_directions": "ars:top_directions=8",
    "optimizer": "openai-es:optimizer=sgd",
    "momentum": "openai-es:optimizer=sgd,momentum=0.5",
    "weight_decay": "openai-es:weight_decay=0.01",
    "shaping": "openai-es:shaping=nes",
}
"""Option names that belong to strategies here, and the text of ``strategy`` that has them."""


_NO_DEVICE: Final = ": policies of environments run on the CPU; escalade.evolve, in Python, takes a device"

_NOWHERE: Final[dict[str, str]] = dict.fromkeys(("device", "gpu", "cuda", "gpus"), _NO_DEVICE)


def meant(word: str, options: Mapping[str, str]) -> str:
    """Return ``"; did you mean X?"`` for a word that is no option; ``options`` says how each is written."""
    name = word.removeprefix("--").replace("-", "_")
    if name in _NOWHERE:
        return _NOWHERE[name]
    if name in OF_STRATEGIES:
        return f": use `strategy={OF_STRATEGIES[name]}`"
    option = SYNONYMS.get(name, "")
    return f"; did you mean {options[option]}?" if option in options else nearest(word, options.values())
