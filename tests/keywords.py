"""The stub of the options as keywords, made from the dataclass: ``python -m tests.keywords`` writes it."""

import json
import re
from pathlib import Path

import escalade
from escalade.config.environment import CHECKED
from escalade.config.options import OPTIONS, RESUMABLE

PLACE = Path(escalade.__file__).parent / "config" / "keywords.pyi"
NAMED = {"engine": "EngineName", "backend": "BackendName"}  # other functions take them too
CLASSES = {
    **dict.fromkeys(("cutoff", "frame_skip", "population"), "int | str | None"),
    **dict.fromkeys(("novelty", "reward"), "str | None"),
    **dict.fromkeys(("start_from", "run_dir"), "str | os.PathLike[str] | None"),
    "hidden": "int | Sequence[int] | None",
    "resize": "int | Sequence[int]",
    "behavior": "str | Callable[[Any], Any] | None",
    "strategy": "str | Callable[..., Any]",
    "wrappers": "Sequence[str | Callable[..., Any]]",
}
HEAD = '''"""The options as keywords, for type checkers. tests/keywords.py makes this file: do not edit it.

Options that are tuples in the config accept any sequence. Strategies and wrappers may be classes, which the
config stores by name.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

{named}
class ResumeOptions(TypedDict, total=False):
    """Options that may change when a run is resumed."""

'''
CHECK = '''
class CheckOptions(TypedDict, total=False):
    """Options by which an environment is made."""

'''
TRAIN = '''
class TrainOptions(ResumeOptions, CheckOptions, total=False):
    """All options but the environment and the preset, which are arguments of their own."""

'''


def literal(name):
    """The type of an option that takes names of a registry alone."""
    return f"Literal[{', '.join(map(json.dumps, OPTIONS[name].metadata['choices']))}]"


def line(name):
    """An option as an entry of a TypedDict."""
    taken = re.sub(r"tuple\[(\w+), \.\.\.\]", r"Sequence[\1]", OPTIONS[name].type).replace("'", '"')
    if OPTIONS[name].metadata["choices"] and not OPTIONS[name].metadata["own"]:
        taken = NAMED.get(name, literal(name))
    return f"    {name}: {CLASSES.get(name, taken)}\n"


def stub():
    """The stub's text."""
    named = "".join(f"{alias}: TypeAlias = {literal(name)}\n" for name, alias in NAMED.items())
    others = [name for name in OPTIONS if name not in ("env", "preset", *RESUMABLE, *CHECKED)]
    return "".join(
        [
            HEAD.replace("{named}", named),
            *map(line, RESUMABLE),
            CHECK,
            *map(line, CHECKED),
            TRAIN,
            *map(line, others),
        ]
    )


if __name__ == "__main__":
    PLACE.write_text(stub(), encoding="utf-8")
