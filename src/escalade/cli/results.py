"""The commands ``eval`` and ``render``, which run a trained policy."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from escalade.api.opening import warm_up_for
from escalade.cli.arguments import Parser, add_argument, add_command, add_options, options_typed, whole
from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import counted, finite, number
from escalade.support.output import print_line

LATEST = "latest"
"""The default checkpoint of commands, the one that the run's summary describes."""


def add_eval(commands: Any) -> None:
    """``escalade eval``."""
    parser = add_command(
        commands,
        "eval",
        "RUN",
        _evaluate,
        examples=[
            "runs/CartPole-v1/ars-seed0-20250101-120000 --episodes 1000 --json",
            "runs/Pendulum-v1/first --env-kwargs '{\"g\": 12.0}'",
        ],
    )
    _add_policy(parser, seed="the run's")
    add_argument(parser, "--episodes", "N", "number of episodes", "100")
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: a line of text)")
    add_options(parser, ["env_kwargs", "backend", "workers", "device", "info_keys"], default="the run's")


def add_render(commands: Any) -> None:
    """``escalade render``."""
    parser = add_command(
        commands,
        "render",
        "RUN",
        _render,
        examples=["runs/CartPole-v1/ars-seed0-20250101-120000 --output film.gif --max-steps 300"],
    )
    _add_policy(parser, seed="0")
    place = "video.mp4 or video-CHECKPOINT.mp4 in RUN; for a policy file, FILE.mp4"
    add_argument(parser, "--output", "FILE", "file of the film, .mp4 or .gif", place)
    parser.add_argument(
        "--live", action="store_true", help="episode in a window instead of a film (default: film)"
    )
    add_argument(parser, "--max-steps", "N", "maximum number of steps", "the whole episode")


def _add_policy(parser: Parser, seed: str) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder, policy file, or zoo:NAME")
    add_argument(parser, "--checkpoint", "best|latest|GENERATION", "checkpoint of the policy", LATEST)
    add_argument(parser, "--center", "N", "index of the center, if the run has several", "the best")
    add_argument(parser, "--seed", "N", "seed of the episodes", seed)


def _evaluate(parsed: argparse.Namespace) -> int:
    options = options_typed(parsed)
    episodes = whole("episodes", parsed.episodes) or 100
    Config(env="any", **options)  # checks the values before torch is imported
    env, checkpoint = _find_policy(parsed, options)
    from escalade.api.evaluate import evaluate
    from escalade.rollout.episodes import mean_known

    center = whole("center", parsed.center, least=0)
    own: dict[str, Any] = {
        "checkpoint": parsed.checkpoint or LATEST,
        "center": center,
        "behavior": "none",  # not printed
    }
    result = evaluate(parsed.run, episodes=episodes, **own, **options)
    means = {key: mean_known(values) for key, values in result.infos.items()}
    best = result.deterministic_returns
    drawn = {} if best is None else {"deterministic_return_mean": float(best.mean())}
    facts = {
        "env": env,
        "checkpoint": checkpoint,
        **({} if center is None else {"center": center}),
        "generation": result.generation,
        "params_sha256": result.params_sha256,
        "env_kwargs": options.get("env_kwargs", {}),
        "episodes": len(result.returns),
        "failed": result.failed,
        "return_mean": result.mean,
        "return_std": result.std,
        "return_min": float(result.returns.min()),
        "return_max": float(result.returns.max()),
        "episode_length_mean": float(result.lengths.mean()),
        **drawn,
        **{f"{key}_mean": mean for key, mean in means.items()},
    }
    if parsed.json:
        print_line(json.dumps(finite(facts)))
    else:
        infos = "".join(
            f", {key} {'in no episode' if mean is None else number(mean)}" for key, mean in means.items()
        )
        infos += "" if best is None else f", sampled actions (best actions: {number(float(best.mean()))})"
        infos += f", {result.failed} failed (counted as the worst of the others)" if result.failed else ""
        infos += f" (one raised {result.raised})" if result.raised else ""
        others = f" with {json.dumps(options['env_kwargs'])}" if options.get("env_kwargs") else ""
        found = f"{number(result.mean)} ± {number(result.std)} over {counted(len(result.returns), 'episode')}"
        print_line(f"{env}{others}, {policy_called(checkpoint, center)}: return {found}{infos}")
        if os.path.isfile(parsed.run):
            without = "wrappers and limits" if others else "wrappers, limits and arguments"
            print_line(f"played without {without} of the environment, which {checkpoint} does not store")
    return 0


def _find_policy(parsed: argparse.Namespace, options: dict[str, Any]) -> tuple[str, str]:
    """Return the environment of the run or policy file, and the name of the checkpoint or file."""
    if not os.path.isfile(parsed.run):
        config = read_config(RunFolder.open(parsed.run))
        ours = {name: options[name] for name in ("workers", "backend") if name in options}
        warm_up_for(config.here().replace(step_timeout=None, **ours))
        return config.env, parsed.checkpoint or LATEST
    from escalade.policies.policy_file import PolicyFile

    file = Path(parsed.run)
    return PolicyFile.read(file).env, file.name


def policy_called(checkpoint: str, center: int | None = None) -> str:
    """Describe the policy of a checkpoint or file."""
    of = "" if center is None else f" of center {center}"
    return f"policy of generation {checkpoint}{of}" if checkpoint.isdecimal() else f"{checkpoint} policy{of}"


def _render(parsed: argparse.Namespace) -> int:
    options = options_typed(parsed)
    if os.path.isfile(parsed.run):
        checkpoint = Path(parsed.run).name
        place = Path(parsed.run).with_suffix(".mp4")
    else:
        checkpoint = parsed.checkpoint or LATEST
        place = RunFolder.open(parsed.run).named_after(checkpoint, "video.mp4", "video-best.mp4")
    center = whole("center", parsed.center, least=0)
    if center is not None:
        place = place.with_stem(f"{place.stem}-center-{center}")
    output = Path(parsed.output) if parsed.output else None if parsed.live else place
    most = whole("max_steps", parsed.max_steps)
    Config(env="any", **options)  # checks the values before torch is imported
    from escalade.api.evaluate import render

    selected = parsed.checkpoint or LATEST
    options |= {"checkpoint": selected, "center": center, "max_steps": most, "live": parsed.live}
    total, steps = render(parsed.run, output, **options)
    print_line(
        f"{output or 'shown'}: {policy_called(checkpoint, center)}, {steps} steps, return {number(total)}"
    )
    return 0
