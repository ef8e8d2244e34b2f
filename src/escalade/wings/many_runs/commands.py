"""A series from the command line, by ``train --seeds`` or several ``--config``; the command ``sweep``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from escalade.api.opening import warm_up_for
from escalade.cli.arguments import Parser, add_argument, add_command, whole
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.media.figure import plotting_available
from escalade.recorders import columns_of
from escalade.storage.run_folder import RunFolder
from escalade.support.imports import install
from escalade.support.interrupts import INTERRUPTED
from escalade.support.numbers import counted, number
from escalade.support.output import say
from escalade.wings.many_runs.runner import run_series
from escalade.wings.many_runs.series import Planned, parse_seeds, plan_series, reread, series_folder

_GO_ON = "the same command goes on with what is missing"


def add_flags(parser: Parser) -> None:
    """Add the flags of ``train`` that make several runs."""
    add_argument(parser, "--seeds", "SEEDS", "a run for each of these seeds, such as 0-4 or 0,3,7", "one run")
    add_argument(parser, "--jobs", "N", "how many of several runs go on at a time, sharing the cores", "1")


def requested(parsed: argparse.Namespace) -> str | None:
    """Return the flag that requests several runs, or None."""
    several = {"seeds": parsed.seeds, "jobs": parsed.jobs, "config": (parsed.config or ())[1:] or None}
    return next((flag for flag, typed in several.items() if typed is not None), None)


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
    done = sum(one.done for one in planned)
    before = f", {done} of them done already" if done else ""
    say(f"{counted(len(planned), 'run')} in {folder}{before}; Ctrl-C saves, and {_GO_ON}")
    if (parsed.seeds or "").isdecimal():
        say(f"running seed {parsed.seeds} only; several seeds are a range, such as --seeds 0-9")
    code = 0
    try:
        _run(planned, done, whole("jobs", parsed.jobs) or 1)
    except KeyboardInterrupt:
        say(f"interrupted; {_GO_ON}")
        code = INTERRUPTED
    _conclude(planned, folder)
    return code


def _run(planned: list[Planned], done: int, jobs: int) -> None:
    place = count(done + 1)

    def begins(one: Planned) -> None:
        verb = "begins" if one.begun is None else "goes on"
        say(f"run {next(place)} of {len(planned)} {verb}: {one.folder}")
        warm_up_for(one.config)

    for one in run_series(planned, jobs, begins=begins):
        summary = RunFolder(one.folder).read_summary()
        how, result = summary.get("stop_reason"), number(summary.get("eval_return_mean"))
        if jobs > 1:
            say(f"run {next(place)} of {len(planned)} ended ({how}), return {result}: {one.folder}")
        if how in ("interrupted", None):  # None: before it had a policy
            raise KeyboardInterrupt


def _conclude(planned: list[Planned], folder: Path) -> None:
    """Print the table of the runs so far, and draw their curves."""
    import escalade  # the wing that reads finished runs, by its public names

    begun = [one.folder for one in reread(planned) if one.begun is not None]
    folders = [place for place in begun if columns_of(RunFolder(place))["generation"]]
    if not folders:
        return
    say(str(escalade.compare(folders)))
    if not plotting_available():
        say(f"no picture: plots need matplotlib; {install('plot')}")
        return
    picture = folder / "curve.png"
    escalade.plot(folders, picture)
    say(f"picture: {picture}")


def add_sweep(commands: Any) -> None:
    """``escalade sweep``."""
    parser = add_command(
        commands,
        "sweep",
        "FILE.toml",
        _sweep,
        more="FILE.toml names the trials, and in the tables [options] what they share, in [space] what is\n"
        "searched. The same command goes on with what is missing. See the page 'Many runs' in the docs.",
        examples=["lunar.toml --jobs 2", "lunar.toml --trials 100 --run-dir runs/lunar"],
    )
    parser.add_argument("file", metavar="FILE.toml", help="what is searched, and how")
    add_argument(parser, "--jobs", "N", "trials that run at the same time", "1")
    add_argument(parser, "--trials", "N", "how many there are to be", "as the file says")
    add_argument(parser, "--run-dir", "FOLDER", "the sweep's folder", "runs/sweep-NAME, of the file's name")


def _sweep(parsed: argparse.Namespace) -> int:
    jobs, trials = whole("jobs", parsed.jobs) or 1, whole("trials", parsed.trials)
    from escalade.wings.many_runs.sweep import sweep

    sweep(parsed.file, run_dir=parsed.run_dir, jobs=jobs, trials=trials, say=say)
    return 0
