"""The command that lists what can be trained on: ``environments``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from escalade.cli.arguments import add_command
from escalade.errors import InputError, nearest
from escalade.support.output import say

_SHOWN = 3  # ids of a family, where no word is given


def add_environments(commands: Any) -> None:
    """``escalade environments``."""
    parser = add_command(
        commands,
        "environments",
        "[WORD]",
        _environments,
        more="With a word: those that have it in their id or family, with spaces and step limits.",
        examples=["", "cheetah", "minigrid --json"],
    )
    parser.add_argument("word", nargs="?", metavar="WORD", help="part of an id or of a family (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines of text)")


def _environments(parsed: argparse.Namespace) -> int:
    from escalade.envs.catalogue import families, listed

    found = families(parsed.word or "")
    if parsed.word and not found:
        known = [one for name, ids in families().items() for one in (name, *ids)]
        raise InputError(
            f"no environment has {parsed.word!r} in its id or family{nearest(parsed.word, known)}"
        )
    if parsed.word and parsed.json:
        say(json.dumps({"environments": [one.as_dict() for one in listed(parsed.word)]}))
    elif parsed.word:
        _say_each(parsed.word, max(len(one) for ids in found.values() for one in ids))
    elif parsed.json:
        say(json.dumps({"families": found}))
    else:
        _say_families(found)
    return 0


def _say_families(found: dict[str, list[str]]) -> None:
    width = max(map(len, found))
    for name, ids in found.items():
        say(f"{name:<{width}}  {len(ids):>5}  {', '.join(ids[:_SHOWN])}{', ...' * (len(ids) > _SHOWN)}")
    say(f"{sum(map(len, found.values())):,} environments; escalade environments WORD shows spaces and limits")


def _say_each(word: str, width: int) -> None:
    from escalade.envs.catalogue import listed, said

    family = None
    for one in listed(word):
        if one.family != family:
            family = one.family
            say(f"{family}:")
        if one.observations is None or one.actions is None:
            say(f"  {one.env:<{width}}  {one.problem}")
            continue
        limit = "no limit" if one.max_episode_steps is None else f"{one.max_episode_steps:,} steps"
        spaces = f"{said(one.observations)} -> {said(one.actions, 'actions')}"
        say(f"  {one.env:<{width}}  {spaces}, {limit}")
