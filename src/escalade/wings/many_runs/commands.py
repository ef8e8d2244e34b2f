"""Series of runs with ``train --seeds`` or several ``--config``, and the command ``sweep``."""

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
from escalade.support.output import print_line
from escalade.wings.many_runs.runner import run_series
from escalade.wings.many_runs.series import Planned, parse_seeds, plan_series, reread, series_folder

_CONTINUE = "run the same command again to continue"


def add_flags(parser: Parser) -> None:
    """Add the flags of ``train`` for several runs."""
    add_argument(parser, "--seeds", "SEEDS", "seeds of several runs, such as 0-4 or 0,3,7", "one run")
    add_argument(parser, "--jobs", "N", "number of simultaneous runs, which share the cores", "1")


def requested(parsed: argparse.Namespace) -> str | None:
    """Return the flag that requests several runs, or None."""
    several = {"seeds": parsed.seeds, "jobs": parsed.jobs, "config": (parsed.config or ())[1:] or None}
    return next((flag for flag, typed in several.items() if typed is not None), None)


def train(parsed: argparse.Namespace, configs: Mapping[str, Config]) -> int:
    """Run the missing runs of the series, and print a summary of all runs.

    Raises:
        InputError: flags exclude each other, or the folder contains different runs.
    """
    if parsed.seeds is not None and hasattr(parsed, "seed"):
        raise InputError("`seed` and `seeds` exclude each other; remove one")
    if parsed.seeds is None and len(configs) == 1:
        raise InputError("`jobs` has no effect on a single run; add `seeds` or several `config`")
    seeds = None if parsed.seeds is None else parse_seeds(parsed.seeds)
    run_dirs = {config.run_dir for config in configs.values()}
    if len(run_dirs) > 1:
        raise InputError("the `config` files have different run_dir; set one `run_dir` for all runs")
    folder = series_folder(configs, run_dirs.pop())
    planned = plan_series(configs, seeds, folder)
    done = sum(one.done for one in planned)
    before = f", {done} of them already done" if done else ""
    print_line(f"{counted(len(planned), 'run')} in {folder}{before}; Ctrl-C saves; {_CONTINUE}")
    if (parsed.seeds or "").isdecimal():
        print_line(f"running seed {parsed.seeds} only; several seeds are a range, such as --seeds 0-9")
    code = 0
    try:
        _run(planned, done, whole("jobs", parsed.jobs) or 1)
    except KeyboardInterrupt:
        print_line(f"interrupted; {_CONTINUE}")
        code = INTERRUPTED
    _conclude(planned, folder)
    return code


def _run(planned: list[Planned], done: int, jobs: int) -> None:
    place = count(done + 1)

    def announce(one: Planned) -> None:
        verb = "starts" if one.begun is None else "resumes"
        print_line(f"run {next(place)} of {len(planned)} {verb}: {one.folder}")
        warm_up_for(one.config)

    for one in run_series(planned, jobs, on_start=announce):
        summary = RunFolder(one.folder).read_summary()
        how, result = summary.get("stop_reason"), number(summary.get("eval_return_mean"))
        if jobs > 1:
            print_line(f"run {next(place)} of {len(planned)} ended ({how}), return {result}: {one.folder}")
        if how in ("interrupted", None):  # None: interrupted before it had a policy
            raise KeyboardInterrupt


def _conclude(planned: list[Planned], folder: Path) -> None:
    """Print the table of the runs so far, and draw their curves."""
    import escalade  # wings may use one another only through public names

    begun = [one.folder for one in reread(planned) if one.begun is not None]
    folders = [place for place in begun if columns_of(RunFolder(place))["generation"]]
    if not folders:
        return
    print_line(str(escalade.compare(folders)))
    if not plotting_available():
        print_line(f"no picture: plots need matplotlib; {install('plot')}")
        return
    picture = folder / "curve.png"
    escalade.plot(folders, picture)
    print_line(f"picture: {picture}")


def add_sweep(commands: Any) -> None:
    """Add the command ``sweep``."""
    parser = add_command(
        commands,
        "sweep",
        "FILE.toml",
        _sweep,
        more="FILE.toml contains the number of trials, and the tables [options] with shared options and\n"
        "[space] with the options to search. To continue a sweep, run the same command again. See the\n"
        "page 'Many runs' in the docs.",
        examples=["lunar.toml --jobs 2", "lunar.toml --trials 100 --run-dir runs/lunar"],
    )
    parser.add_argument("file", metavar="FILE.toml", help="definition of the sweep")
    add_argument(parser, "--jobs", "N", "number of simultaneous trials", "1")
    add_argument(parser, "--trials", "N", "total number of trials", "that of the file")
    add_argument(parser, "--run-dir", "FOLDER", "folder of the sweep", "runs/sweep-NAME for NAME.toml")


def _sweep(parsed: argparse.Namespace) -> int:
    jobs, trials = whole("jobs", parsed.jobs) or 1, whole("trials", parsed.trials)
    from escalade.wings.many_runs.sweep import sweep

    sweep(parsed.file, run_dir=parsed.run_dir, jobs=jobs, trials=trials, log=print_line)
    return 0
