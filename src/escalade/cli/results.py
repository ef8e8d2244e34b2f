"""The commands that run a trained policy: ``eval`` and ``render``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from escalade.cli.arguments import add_argument, add_command, add_options, options_typed, whole
from escalade.cli.output import say
from escalade.cli.training import warm_up_of
from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder

_CHECKPOINT = "best|latest|GENERATION"
_SEED = "the same seed gives the same episodes"


def add_eval(commands: Any) -> None:
    """``escalade eval``."""
    parser = add_command(
        commands,
        "eval",
        "RUN",
        "evaluate a run's unperturbed policy: its mean return over fresh episodes",
        _evaluate,
        examples=["runs/CartPole-v1/openai-es-seed0-20250101-120000 --episodes 1000 --json"],
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    add_argument(parser, "--episodes", "N", "how many", "100")
    add_argument(parser, "--checkpoint", _CHECKPOINT, "whose policy", "latest")
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: a line of text)")
    add_argument(parser, "--seed", "N", _SEED, "the run's")
    add_options(parser, ["backend", "workers"], default="the run's")


def add_render(commands: Any) -> None:
    """``escalade render``."""
    parser = add_command(
        commands,
        "render",
        "RUN",
        "film an episode of a run's unperturbed policy",
        _render,
        examples=["runs/CartPole-v1/openai-es-seed0-20250101-120000 --output film.gif --max-steps 300"],
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    add_argument(parser, "--output", "FILE", "x.mp4 or x.gif", "video.mp4 in the run's folder")
    add_argument(parser, "--checkpoint", _CHECKPOINT, "whose policy", "best")
    add_argument(parser, "--max-steps", "N", "stop filming after this many steps", "the episode's end")
    add_argument(parser, "--seed", "N", _SEED, "0")


def _evaluate(parsed: argparse.Namespace) -> int:
    folder, given = RunFolder.open(parsed.run), options_typed(parsed)
    checkpoint = parsed.checkpoint or "latest"
    episodes = whole("episodes", parsed.episodes, 100) or 100
    Config(env="any", **given)  # checks the values, before torch is imported
    warm_up_of(folder)
    from escalade.api.evaluate import evaluate

    result = evaluate(parsed.run, episodes=episodes, checkpoint=checkpoint, **given)
    env = read_config(folder).env
    facts = {
        "env": env,
        "checkpoint": checkpoint,
        "episodes": len(result.returns),
        "return_mean": result.mean,
        "return_std": result.std,
        "return_min": float(result.returns.min()),
        "return_max": float(result.returns.max()),
        "episode_length_mean": float(result.lengths.mean()),
    }
    if parsed.json:
        say(json.dumps(facts))
    else:
        say(f"{env}: return {result.mean:.2f} ± {result.std:.2f} over {len(result.returns)} episodes")
    return 0


def _render(parsed: argparse.Namespace) -> int:
    folder, given = RunFolder.open(parsed.run), options_typed(parsed)
    output = Path(parsed.output) if parsed.output else folder.path / "video.mp4"
    most = whole("max_steps", parsed.max_steps, None)
    Config(env="any", **given)  # checks the values, before torch is imported
    from escalade.api.evaluate import render

    total, steps = render(parsed.run, output, checkpoint=parsed.checkpoint or "best", max_steps=most, **given)
    say(f"{output}: {steps} steps, return {total:.1f}")
    return 0
