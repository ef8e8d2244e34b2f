"""Words that people type and that are no options: those of earlier versions, and those of other programs.

Config files and checkpoints still name options of earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from escalade.config.commands import flag
from escalade.errors import InputError, nearest

_WRAPPER: Final = "use `wrappers='escalade.envs.wrappers:{}'`".format
_GROWTH: Final = "generations grow by `min_episodes` or `min_env_steps`"
_REWARD: Final = "give a gymnasium.RewardWrapper of yours to `wrappers`"

REMOVED: Final[dict[str, tuple[Any, str]]] = {
    "burn_in": (0, _WRAPPER("BurnIn(40)")),
    "burn_in_action": ([], _WRAPPER("BurnIn(40,action=[0.5])")),
    "fire_on_reset": (False, _WRAPPER("FireOnReset")),
    "terminal_on_life_loss": (False, _WRAPPER("LifeLossEnds")),
    "reward_ceiling": (None, _REWARD),
    "reward_scale": (1.0, _REWARD),
    "reward_sign": (False, _REWARD),
    "top_directions": (None, "use `strategy=ars:top_directions=8`"),
    "optimizer": (None, "use `strategy=openai-es:optimizer=sgd`"),
    "momentum": (0.9, "use `strategy=openai-es:optimizer=sgd,momentum=0.5`"),
    "weight_decay": (0.0, "use `strategy=openai-es:weight_decay=0.01`"),
    "shaping": (None, "use `strategy=openai-es:shaping=nes`"),
    "start_sha256": (None, "use `start_from=RUN@SHA256`"),
    "early_end_from": (0, "use `early_end=20,200`"),
    "track": ([], "use `recorder=tensorboard,wandb`"),
    "max_population": (None, _GROWTH),
    "grow_after": (None, _GROWTH),
    "restart_after": (None, "train with another `seed`"),
}
"""Each by name: its old default, and what to do instead."""


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


_NO_DEVICE: Final = ": policies of environments run on the CPU; escalade.evolve, in Python, takes a device"

_NOWHERE: Final[dict[str, str]] = dict.fromkeys(("device", "gpu", "cuda", "gpus"), _NO_DEVICE)


def meant(word: str, options: Mapping[str, str]) -> str:
    """Return ``"; did you mean X?"`` for a word that is no option; ``options`` says how each is written."""
    name = word.removeprefix("--").replace("-", "_")
    if name in _NOWHERE:
        return _NOWHERE[name]
    option = SYNONYMS.get(name, "")
    return f"; did you mean {options[option]}?" if option in options else nearest(word, options.values())


def without_removed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that went, where they are as they were when not given.

    Raises:
        InputError: one is anything else; the message says what replaces it.
    """
    for name, (default, instead) in REMOVED.items():
        if values.get(name) not in (default, None, "none"):
            raise InputError(f"`{name}` is no option any more: {instead}")
    return {name: value for name, value in values.items() if name not in REMOVED}


def refusals() -> dict[str, str]:
    """The refusal of each flag that went, by the flag."""
    return {flag(name): f"is no flag any more: {instead}" for name, (_, instead) in REMOVED.items()}
