"""The commands ``train`` and ``resume``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from escalade.api.opening import announce, announce_resumed, warm_up_for
from escalade.cli.arguments import Parser, add_command, add_environment, add_options, options_typed
from escalade.cli.registry import MODES
from escalade.config.commands import flag
from escalade.config.conversion import read_toml
from escalade.config.options import OPTIONS, RESUMABLE, Config
from escalade.config.strategy_text import layered
from escalade.errors import InputError
from escalade.storage.run_folder import RunFolder
from escalade.support.interrupts import INTERRUPTED
from escalade.support.output import print_line
from escalade.training.sources import inherited

if TYPE_CHECKING:
    from escalade.api.train import Run


class Mode(Protocol):
    """Interface of the modules in :data:`MODES`, each a way to train other than one run in this process."""

    def add_flags(self, parser: Parser) -> None:
        """Add the flags of this mode."""

    def requested(self, parsed: argparse.Namespace) -> str | None:
        """Return the name of the typed flag that selects this mode, or None."""

    def train(self, parsed: argparse.Namespace, configs: Mapping[str, Config]) -> int:
        """Train with ``configs``, keyed by file name, and return the exit code."""


def add_train(commands: Any) -> None:
    """``escalade train``."""
    parser = add_command(
        commands,
        "train",
        "ENV",
        _train,
        more="An option takes its value from the first of these that sets it: the flag, the --config file,\n"
        "the run named by --from (policy and frames only), the preset (see 'escalade presets'), the default.",
        examples=[
            "CartPole-v1",
            "HalfCheetah-v5 --population 256 --seconds 600 --workers 8",
            "HalfCheetah-v5 --from runs/HalfCheetah-v5/first:best --sigma 0.01",
            "CartPole-v1 --seeds 0-4 --config narrow.toml --config wide.toml",
            "Pendulum-v1 --preset none --env-kwargs '{\"g\": 2.0}' --sigma linear:0.1:0.02:300",
        ],
    )
    add_environment(parser, nargs="?")
    parser.add_argument(
        "--config",
        metavar="FILE",
        action="append",
        help="TOML file of options, such as target_return = 475; repeat to run several in turn "
        "(default: no file)",
    )
    for mode in _modes():
        mode.add_flags(parser)
    add_options(parser, [name for name in OPTIONS if name != "env"], brief=True)


def add_resume(commands: Any) -> None:
    """``escalade resume``."""
    parser = add_command(
        commands,
        "resume",
        "RUN",
        _resume,
        more="Only the options below may change.",
        examples=["runs/CartPole-v1/ars-seed0-20250101-120000 --generations 500"],
    )
    parser.add_argument("run", metavar="RUN", help="run folder")
    add_options(parser, RESUMABLE, default="unchanged", brief=True)
    able = ", ".join(flag(name) for name in RESUMABLE)
    parser.refusals = {
        flag(name): f"cannot change in a resumed run; only {able} can"
        for name in OPTIONS
        if name not in (*RESUMABLE, "env")
    }


def config_typed(parsed: argparse.Namespace, path: str | None = None) -> Config:
    """Build the config from defaults, preset, the run of ``--from``, file and flags; later ones win.

    The file is ``path`` or, if None, the only ``--config``. If the file sets every option, as a run's
    config.toml does, no preset is applied.
    """
    from escalade.config import presets

    only = [path] if path else getattr(parsed, "config", None)
    file = read_toml(only[0]) if only else {}
    typed = options_typed(parsed, but=getattr(parsed, "own", ()))
    options, report = layered(file, typed), None if getattr(parsed, "json", False) else print_line
    if "preset" in typed or not file.keys() >= OPTIONS.keys() - {"run_dir", "preset"}:
        return presets.layer(options, inherited(options), "auto", report)
    # The file's options already include those of its preset.
    return presets.layer(options | {"preset": None}, inherited(options), None, report).replace(
        preset=file.get("preset")
    )


def _configs_typed(parsed: argparse.Namespace) -> dict[str, Config]:
    """Build a config for each file, keyed by the file's stem, or a single config keyed by ``config``."""
    named: dict[str, Config] = {}
    for path in parsed.config or [None]:
        name = "config" if path is None else Path(path).stem
        if name in named:
            raise InputError(
                f"`config` {path}: two files are called {name}, which would name both runs; rename one"
            )
        named[name] = config_typed(parsed, path)
    return named


def _train(parsed: argparse.Namespace) -> int:
    configs = _configs_typed(parsed)
    requested = {flag: mode for mode in _modes() if (flag := mode.requested(parsed)) is not None}
    if len(requested) > 1:
        raise InputError(f"{' and '.join(f'`{flag}`' for flag in requested)} exclude each other; choose one")
    for mode in requested.values():
        return mode.train(parsed, configs)
    (config,) = configs.values()
    announce(config)
    warm_up_for(config)
    from escalade.api.train import train_config

    return _code(train_config(config))


def _modes() -> list[Mode]:
    return [entry.load() for entry in MODES.values()]


def _resume(parsed: argparse.Namespace) -> int:
    folder, changes = RunFolder.open(parsed.run), options_typed(parsed)
    config = announce_resumed(folder, changes)  # checks the values before torch is imported
    if config is not None:
        warm_up_for(config)
    from escalade.api.train import resume_folder

    return _code(resume_folder(folder, changes))


def _code(run: Run) -> int:
    return INTERRUPTED if run.summary["stop_reason"] == "interrupted" else 0
