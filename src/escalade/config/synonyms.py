"""Option names from other libraries, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from escalade.errors import nearest

_NAMES_ELSEWHERE: Final[dict[str, tuple[str, ...]]] = {
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
"""Names in other libraries by option."""

SYNONYMS: Final = {word: option for option, words in _NAMES_ELSEWHERE.items() for word in words}
"""Options by their names in other libraries."""


OF_STRATEGIES: Final[dict[str, str]] = {
    "top_directions": "ars:top_directions=8",
    "optimizer": "openai-es:optimizer=sgd",
    "momentum": "openai-es:optimizer=sgd,momentum=0.5",
    "weight_decay": "openai-es:weight_decay=0.01",
    "shaping": "openai-es:shaping=nes",
}
"""Options of strategies, with an example of how to set them."""


def suggest_option(word: str, options: Mapping[str, str]) -> str:
    """Return ``"; did you mean X?"`` for an unknown word. ``options`` maps options to flags or names."""
    name = word.removeprefix("--").replace("-", "_")
    if name in OF_STRATEGIES:
        return f"; use `strategy={OF_STRATEGIES[name]}`"
    option = SYNONYMS.get(name, "")
    return f"; did you mean {options[option]}?" if option in options else nearest(word, options.values())
