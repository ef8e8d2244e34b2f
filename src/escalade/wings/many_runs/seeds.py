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

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # another in each process


def own_code(config: Config, network: Any) -> list[str]:
    """The code that a config does not tell apart: a module's layers and classes, and the script they are in.

    Weights are left out: a script whose module begins at random goes on with its series, too. Notebooks
    have no file, so two of them are one.
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
    """Train what is missing of the runs with these seeds; those that have ended, in the order of ``seeds``.

    Args:
        config: whose seed and folder are replaced; ``run_dir`` is the folder of the series.
        seeds: one a run.
        jobs: how many runs go on at a time, in processes of their own where there are several.
        listeners: of runs in this process.
        network: as in :func:`escalade.train`.

    Raises:
        InputError: a seed is none or named twice, the folder holds other runs, or several jobs are given what
            only this process has.
    """
    from escalade.api.train import Run
    from escalade.policies.policy import load
    from escalade.training.saved import network_of

    numbers = [whole_number(seed, "`seeds`", 0) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"`seeds` {seeds!r} must be one seed or more, each named once")
    if whole_number(jobs, "`jobs`", 1) > 1:
        given = {"network": network, "recorders": listeners.recorders, "callbacks": listeners.callbacks}
        here = [name for name, value in given.items() if value] + of_a_script(vars(config))
        if here:
            raise InputError(
                f"`jobs` above 1 runs in other processes, which cannot have {here[0]}: leave it out, or name "
                "what is in a module"
            )
    folder = series_folder({"config": config}, config.run_dir, own_code(config, network))
    planned = plan_series({"config": config}, numbers, folder)
    deque(run_series(planned, jobs, listeners=listeners, network=network), maxlen=0)
    folders = [RunFolder(one.folder) for one in planned]
    done = [folder for folder in folders if folder.policy.exists()]
    network = network_of(config, network)
    return [Run(folder, folder.read_summary(), load(folder.policy, network)) for folder in done]
