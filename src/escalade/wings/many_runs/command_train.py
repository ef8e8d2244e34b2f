"""``train --seeds`` and ``train`` with several ``--config``: a series of runs, a table and a picture."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from escalade.api.warm import warm_up_for
from escalade.cli.arguments import Parser, add_argument, whole
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.media.figure import plotting_available
from escalade.storage.run_folder import RunFolder
from escalade.support.imports import install
from escalade.support.interrupts import INTERRUPTED, Interrupts
from escalade.support.numbers import counted
from escalade.support.numbers import number as number_of
from escalade.support.output import say
from escalade.wings.many_runs.jobs import run_jobs
from escalade.wings.many_runs.series import (
    Planned,
    parse_seeds,
    plan_series,
    reread,
    run_series,
    series_folder,
)

_GO_ON = "the same command goes on with what is missing"


def add_flags(parser: Parser) -> None:
    """Add the flags of ``train`` that make several runs."""
    add_argument(parser, "--seeds", "SEEDS", "a run for each of these seeds, such as 0-4 or 0,3,7", "one run")
    add_argument(parser, "--jobs", "N", "how many of several runs go on at a time, sharing the cores", "1")


def requested(parsed: argparse.Namespace) -> bool:
    """Return whether several runs were requested."""
    return (
        any(getattr(parsed, name) is not None for name in ("seeds", "jobs")) or len(parsed.config or ()) > 1
    )


def train(parsed: argparse.Namespace, configs: Mapping[str, Config]) -> int:
    """Run what is missing of the series; say how all of it ended.

    Raises:
        InputError: flags that exclude each other, or a folder that holds other runs.
    """
    if parsed.seeds is not None and hasattr(parsed, "seed"):
        raise InputError("`seed` and `seeds` were both given: choose one")
    if parsed.seeds is None and len(configs) == 1:
        raise InputError("`jobs` is for several runs: give their `seeds`, or several `config`")
    seeds = None if parsed.seeds is None else parse_seeds(parsed.seeds)
    run_dirs = {config.run_dir for config in configs.values()}
    if len(run_dirs) > 1:
        raise InputError("`config` files name different run_dir: give one `run_dir` for all of their runs")
    folder = series_folder(configs, run_dirs.pop())
    planned = plan_series(configs, seeds, folder)
    missing = [one for one in planned if not one.done]
    done = f", {len(planned) - len(missing)} of them done already" if len(missing) < len(planned) else ""
    say(f"{counted(len(planned), 'run')} in {folder}{done}; Ctrl-C saves, and {_GO_ON}")
    if (parsed.seeds or "").isdecimal():
        say(f"it is the one of seed {parsed.seeds}; several seeds are a range, such as --seeds 0-9")
    jobs = whole("jobs", parsed.jobs) or 1
    code = 0
    try:
        if jobs > 1:
            _run_beside(missing, jobs)
        elif missing:
            _run(planned, missing)
    except KeyboardInterrupt:
        say(f"interrupted; {_GO_ON}")
        code = INTERRUPTED
    _conclude(planned, folder)
    return code


def _run(planned: list[Planned], missing: list[Planned]) -> None:
    place = {id(one): number for number, one in enumerate(missing, len(planned) - len(missing) + 1)}

    def begins(one: Planned) -> None:
        verb = "begins" if one.begun is None else "goes on"
        say(f"run {place[id(one)]} of {len(planned)} {verb}: {one.folder}")
        warm_up_for(one.config)

    for run in run_series(missing, begins=begins):
        if run.summary["stop_reason"] == "interrupted":
            raise KeyboardInterrupt


def _run_beside(missing: list[Planned], jobs: int) -> None:
    with Interrupts() as interrupts, interrupts.allowed():
        for number, one in enumerate(run_jobs(missing, jobs)):
            summary = RunFolder(one.folder).read_summary()
            how, result = summary.get("stop_reason"), number_of(summary.get("eval_return_mean"))
            say(f"run {number + 1} of {len(missing)} ended ({how}), return {result}: {one.folder}")
            if how in ("interrupted", None):  # None: before it had a policy
                raise KeyboardInterrupt


def _conclude(planned: list[Planned], folder: Path) -> None:
    """The table and the picture of the runs that there are."""
    import escalade  # the wing that reads finished runs, by its public names

    begun = [one for one in reread(planned) if one.begun is not None and one.begun.columns["generation"]]
    if not begun:
        return
    folders = [one.folder for one in begun]
    say(str(escalade.compare(folders)))
    if not plotting_available():
        say(f"no picture: plots need matplotlib: {install('plot')}")
        return
    picture = folder / "curve.png"
    escalade.plot(folders, picture)
    say(f"picture: {picture}")
