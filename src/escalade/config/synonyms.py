"""Option names from other libraries, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from escalade.errors import nearest

_MEANT: Final[dict[str, tuple[str, ...]]] = {
    "lr": ("learning_rate",),
    "population": ("popsize", "pop_size", "population_size"),
    "sigma": ("noise_std", "noise_stdev"),
    "strategy": ("algo", "algorithm"),
    "policy": ("network", "model"),
    "recorder": ("wandb", "tensorboard", "logger"),
    "target_return": ("early_stop", "early_stopping"),
    "env_steps": ("total_timesteps", "timesteps"),
    "generations": ("epochs", "iterations"),
    "workers": ("num_workers", "n_jobs", "n_envs"),
    "run_dir": ("save",),
    "device": ("gpu", "cuda", "gpus"),
}
"""Options, and what other programs call them."""

SYNONYMS: Final = {word: option for option, words in _MEANT.items() for word in words}
"""Words of other programs, and the options that they mean here."""


OF_STRATEGIES: Final[dict[str, str]] = {
    "top_directions": "ars:top_directions=8",
    "optimizer": "openai-es:optimizer=sgd",
    "momentum": "openai-es:optimizer=sgd,momentum=0.5",
    "weight_decay": "openai-es:weight_decay=0.01",
    "shaping": "openai-es:shaping=nes",
}
"""Option names that belong to strategies here, and the text of ``strategy`` that has them."""


def meant(word: str, options: Mapping[str, str]) -> str:
    """Return ``"; did you mean X?"`` for a word that is no option; ``options`` says how each is written."""
    name = word.removeprefix("--").replace("-", "_")
    if name in OF_STRATEGIES:
        return f": use `strategy={OF_STRATEGIES[name]}`"
    option = SYNONYMS.get(name, "")
    return f"; did you mean {options[option]}?" if option in options else nearest(word, options.values())
