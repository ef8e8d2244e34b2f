"""Train one configuration with several seeds, from Python."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from escalade.config.files import of_a_script
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import whole_number
from escalade.wings.many_runs.runner import run_series
from escalade.wings.many_runs.series import plan_series, series_folder

if TYPE_CHECKING:
    from escalade.api.train import Run
    from escalade.training.run import Listeners

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # differs between processes


def user_code(config: Config, network: Any) -> list[str]:
    """Return a description of user code that is not part of the config: layers and classes, and their script.

    Weights are excluded, so that a script with a randomly initialized module can continue its series. Code in
    notebooks has no file, so all notebooks count as the same script.
    """
    names, layers = of_a_script(vars(config)), []
    if isinstance(network, nn.Module):
        kinds = [type(part) for part in network.modules()]
        names += [f"{kind.__module__}:{kind.__qualname__}" for kind in kinds]
        shapes = [(name, tuple(part.shape)) for name, part in network.named_parameters()]
        layers = [_ADDRESS.sub("", repr(network)), repr(names), repr(shapes)]
    script = getattr(sys.modules["__main__"], "__file__", None)
    return [*(os.path.abspath(script) for name in names if script and name.startswith("__main__:")), *layers]


def train_seeds(
    config: Config, seeds: Sequence[int], jobs: int, listeners: Listeners, network: nn.Module | None
) -> list[Run]:
    """Train the missing runs of these seeds, and return the finished runs in the order of ``seeds``.

    Args:
        config: options of all runs. Its seed is ignored; ``run_dir`` is the folder of the series.
        seeds: one per run.
        jobs: number of simultaneous runs. If above 1, each has its own process.
        listeners: listeners of runs in this process.
        network: as in :func:`escalade.train`.

    Raises:
        InputError: a seed is invalid or repeated, the folder contains different runs, or several jobs would
            need code or objects of this process.
    """
    from escalade.api.train import Run
    from escalade.policies.policy import load
    from escalade.training.saved import network_of

    numbers = [whole_number(seed, "`seeds`", 0) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"`seeds` {seeds!r} must be at least one seed, without repetitions")
    if whole_number(jobs, "`jobs`", 1) > 1:
        objects = {"network": network, "recorders": listeners.recorders, "callbacks": listeners.callbacks}
        local = [name for name, value in objects.items() if value] + of_a_script(vars(config))
        if local:
            raise InputError(
                f"`jobs` above 1 starts separate processes, which cannot use {local[0]}; remove it, or move "
                "it to a module and pass its name"
            )
    folder = series_folder({"config": config}, config.run_dir, user_code(config, network))
    planned = plan_series({"config": config}, numbers, folder)
    deque(run_series(planned, jobs, listeners=listeners, network=network), maxlen=0)
    folders = [RunFolder(one.folder) for one in planned]
    done = [folder for folder in folders if folder.policy.exists()]
    network = network_of(config, network)
    return [Run(folder, folder.read_summary(), load(folder.policy, network)) for folder in done]
