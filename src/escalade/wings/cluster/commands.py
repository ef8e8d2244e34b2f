"""Detached runs on a cluster: ``train --detached``, ``attach`` and ``stop``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from escalade.cli.arguments import Parser, add_argument, add_command
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.support.numbers import number
from escalade.support.output import print_line

_STORAGE = "folder that every machine can reach: a shared path, s3://..., gs://..."


def add_flags(parser: Parser) -> None:
    """Add the flags of ``train`` for detached runs."""
    detached = parser.add_argument(
        "--detached",
        action="store_true",
        help="run on the Ray cluster without this process, stored at --storage (default: no)",
    )
    storage = add_argument(parser, "--storage", "URL", f"for --detached: {_STORAGE}", "none")
    for action in (detached, storage):
        parser.hide(action)


def requested(parsed: argparse.Namespace) -> str | None:
    """Return the flag of detached runs that was typed, or None."""
    return "detached" if parsed.detached else None if parsed.storage is None else "storage"


def train(parsed: argparse.Namespace, configs: Mapping[str, Config]) -> int:
    """Start the run, and print how to attach to it."""
    if not parsed.detached:
        raise InputError("`storage` has no effect without `detached`; remove it")
    if not parsed.storage:
        raise InputError(f"`detached` needs `storage`: a {_STORAGE}")
    (config,) = configs.values()
    from escalade.wings.cluster.detached import start_detached

    name = start_detached(config, parsed.storage)
    print_line(f"started {name}; to follow it: escalade attach {name}; to stop it: escalade stop {name}")
    return 0


def add_attach(commands: Any) -> None:
    """Add the command ``attach``."""
    _add(commands, "attach", stop=False)


def add_stop(commands: Any) -> None:
    """Add the command ``stop``."""
    _add(commands, "stop", stop=True)


def _add(commands: Any, name: str, *, stop: bool) -> None:
    example = "HalfCheetah-v5-ars-seed0-20260101-120000"
    parser = add_command(commands, name, "RUN", partial(_follow, stop=stop), examples=[example])
    parser.add_argument("run", metavar="RUN", help="name of the run")
    address = "address of the cluster: auto, or HOST:PORT of its head"
    add_argument(parser, "--address", "ADDRESS", address, "auto")


def _follow(parsed: argparse.Namespace, *, stop: bool) -> int:
    from escalade.wings.cluster.detached import attach

    summary = attach(parsed.run, print_line, parsed.address or "auto", stop=stop)
    mean = summary["eval_return_mean"]
    evaluated = "" if mean is None else f", return {number(mean)} ± {number(summary['eval_return_std'])}"
    print_line(f"{summary['stop_reason']}: {summary['generations']} generations{evaluated}")
    print_line(f"run folder: {summary['storage']}")
    return 0
