"""The commands ``check``, ``bench`` and ``environments``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from escalade.api.opening import warm_up_for
from escalade.cli.arguments import (
    add_argument,
    add_command,
    add_environment,
    add_options,
    options_typed,
    whole,
    with_flags,
)
from escalade.cli.training import config_typed
from escalade.config.commands import flag
from escalade.config.conversion import convert
from escalade.config.environment import CHECKED
from escalade.config.options import NOT_MEASURED, OPTIONS, Config
from escalade.errors import InputError, nearest
from escalade.support.numbers import counted
from escalade.support.output import print_line

_IRRELEVANT = ("env", "seconds", "run_dir", "snapshot_every", "recorder")  # for a measurement
_OF_BENCH = [
    name
    for name, option in OPTIONS.items()
    if name not in (*NOT_MEASURED, *_IRRELEVANT)
    and (name == "episodes_per_member" or option.metadata["group"] != "evaluation and limits")
]

_SHOWN = 3  # ids per family in the list of all families


def add_check(commands: Any) -> None:
    """Add the command ``check``."""
    parser = add_command(
        commands,
        "check",
        "ENV",
        _check,
        more="The exit code is 1 if a test failed. Warnings do not count.",
        examples=["CartPole-v1", "my_package.my_module:MyEnv-v0 --env-kwargs '{\"size\": 3}' --json"],
    )
    add_environment(parser)
    add_options(parser, CHECKED)
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines of text)")


def _check(parsed: argparse.Namespace) -> int:
    options = options_typed(parsed, but=["env"])
    Config(env=parsed.env, **options)  # validates the values
    from escalade.wings.checking.check import check

    report = check(parsed.env, **options)
    if parsed.json:
        print_line(json.dumps(report.as_dict()))
        return 0 if report.ok else 1
    flags = parsed.parser.flags()
    for finding in report.findings:
        print_line(f"{finding.status:<8} {finding.name}: {with_flags(finding.detail, flags)}")
    warned = sum(finding.status == "warning" for finding in report.findings)
    verdict = "good" if report.ok else "failed"
    print_line(f"{parsed.env}: {verdict}" + (f", {counted(warned, 'warning')}" if warned else ""))
    return 0 if report.ok else 1


def add_bench(commands: Any) -> None:
    """Add the command ``bench``."""
    parser = add_command(commands, "bench", "ENV", _bench, examples=["HalfCheetah-v5 --workers 4 --rounds 3"])
    add_environment(parser)
    add_argument(parser, "--rounds", "N", "alternating turns of training and raw simulator", "5")
    parser.add_argument(
        "--turn-seconds", dest="seconds", metavar="X", help="duration of a turn in seconds (default: 3)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines of text)")
    add_options(parser, _OF_BENCH)
    parser.set_defaults(own=("seconds",))
    parser.refusals = {flag(name): "has no effect on bench; remove it" for name in NOT_MEASURED}


def _bench(parsed: argparse.Namespace) -> int:
    rounds = whole("rounds", parsed.rounds) or 5
    seconds = convert("seconds", parsed.seconds or "3") or 0.0  # bench rejects 0
    config = config_typed(parsed).replace(**dict.fromkeys(NOT_MEASURED))  # a preset may set them
    warm_up_for(config)
    from escalade.wings.checking.bench import bench

    found = bench(
        config, seconds=seconds, rounds=rounds, report=(lambda line: None) if parsed.json else print_line
    )
    if parsed.json:
        print_line(json.dumps({"env": config.env} | vars(found)))
    else:
        print_line(
            f"{config.env} on {found.backend}, {found.workers} workers, population {found.population}, "
            f"{found.slots} slots per worker: {found.useful:,.0f} useful of {found.raw:,.0f} raw steps/s, "
            f"ratio {found.ratio:.2f} (medians of {found.rounds} rounds)"
        )
    return 0


def add_environments(commands: Any) -> None:
    """Add the command ``environments``."""
    parser = add_command(
        commands,
        "environments",
        "[WORD]",
        _environments,
        more="With a word: the matching environments, with their spaces and step limits.",
        examples=["", "cheetah", "minigrid --json"],
    )
    parser.add_argument("word", nargs="?", metavar="WORD", help="part of an id or of a family (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines of text)")


def _environments(parsed: argparse.Namespace) -> int:
    from escalade.wings.checking.catalog import families, listed

    found = families(parsed.word or "")
    if parsed.word and not found:
        known = [one for name, ids in families().items() for one in (name, *ids)]
        raise InputError(
            f"no environment has {parsed.word!r} in its id or family{nearest(parsed.word, known)}"
        )
    if parsed.word and parsed.json:
        print_line(json.dumps({"environments": [one.as_dict() for one in listed(parsed.word)]}))
    elif parsed.word:
        _print_each(parsed.word, max(len(one) for ids in found.values() for one in ids))
    elif parsed.json:
        print_line(json.dumps({"families": found}))
    else:
        _print_families(found)
    return 0


def _print_families(found: dict[str, list[str]]) -> None:
    width = max(map(len, found))
    for name, ids in found.items():
        print_line(
            f"{name:<{width}}  {len(ids):>5}  {', '.join(ids[:_SHOWN])}{', ...' * (len(ids) > _SHOWN)}"
        )
    print_line(
        f"{sum(map(len, found.values())):,} environments; escalade environments WORD shows spaces and limits"
    )


def _print_each(word: str, width: int) -> None:
    from escalade.wings.checking.catalog import brief, listed

    family = None
    for one in listed(word):
        if one.family != family:
            family = one.family
            print_line(f"{family}:")
        if one.observations is None or one.actions is None:
            print_line(f"  {one.env:<{width}}  {one.problem}")
            continue
        limit = "no limit" if one.max_episode_steps is None else f"{one.max_episode_steps:,} steps"
        spaces = f"{brief(one.observations)} -> {brief(one.actions)}"
        print_line(f"  {one.env:<{width}}  {spaces}, {limit}")
