"""A run's README.md: what was trained, how, what came of it, and how to have it again."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

from escalade.config.code import of_a_script
from escalade.errors import InputError
from escalade.storage.files import read_bytes, write_bytes
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import counted, number
from escalade.support.output import visible
from escalade.training.results import updates_of

_MARK = "<!-- Written by Escalade when a run ends. A README.md that begins otherwise is left alone. -->"
_FILES = {
    "policy.safetensors": "the policy as the run left it",
    "best.safetensors": "that of the best evaluation",
    "centres": "the policy of each centre as the run left it, of which policy.safetensors is the best",
    "progress.csv": "one row a generation",
    "notes.csv": "what the run said",
    "summary.json": "how it ended",
    "checkpoints": "what the run goes on from",
}

_COUNTED = {"seconds": None, "env_steps": None, "target_return": None}


def write_card(folder: RunFolder, title: str, summary: Mapping[str, Any]) -> None:
    """Write README.md of a run that has ended, unless somebody else wrote one there.

    Raises:
        StorageFailure: the disk is full.
    """
    place = folder.path / "README.md"
    if place.exists():
        try:
            if not read_bytes(place).startswith(_MARK.encode()):
                return
        except InputError:  # a folder of that name, or a file that is closed to us
            return
    write_bytes(place, card(folder, title, summary).encode())


def card(folder: RunFolder, title: str, summary: Mapping[str, Any]) -> str:
    """The text of it."""
    settings = read_bytes(folder.config).decode()
    values = tomllib.loads(settings)
    files = [f"- `{name}`: {what}" for name, what in _FILES.items() if (folder.path / name).exists()]
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    parts = [
        _MARK,
        f"# {title}",
        result_of(summary),
        "## Again",
        _again(folder, values, summary),
        "## Settings",
        f"```toml\n{settings.strip()}\n```",
        "## Files",
        "\n".join(files),
        "## Versions",
        versions + ".",
    ]
    return visible("\n\n".join(parts) + "\n")


def result_of(summary: Mapping[str, Any]) -> str:
    """Return a run's result in words."""
    mean, deviation = summary["eval_return_mean"], summary["eval_return_std"]
    lines = []
    if mean is not None:
        spread = "" if deviation is None else f" ± {number(deviation)}"
        of = summary["eval_episodes"]
        age = summary.get("updates_since_evaluation") or 0
        which = f", {counted(age, 'update')} before the last," if age else ":"
        found = f"return {number(mean)}{spread} over {of} evaluation episodes"
        failed = summary.get("eval_failed")
        others = f", of which {failed} failed and count as the worst of the others" if failed else ""
        lines.append(f"Its unperturbed policy{which} {found}{others}.")
    target = summary["target_return"]
    if target is not None:
        lines.append(f"The target of {target:g} was {'met' if summary['solved'] else 'not met'}.")
    steps = f", {summary['env_steps']:,} environment steps" if summary["env_steps"] else ""
    lines.append(f"{summary['generations']:,} generations{steps}, {number(summary['seconds'])} seconds.")
    lines.append(f"It ended by: {summary['stop_reason']}. Seed {summary['seed']}.")
    return " ".join(lines) + f"\n\nSHA-256 of centre and normaliser: `{summary['params_sha256']}`"


def same_again(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The options to change in a run's config for a run with the same bits; empty where it needs no change.

    It counts updates, and nothing else may end it: the clock and people end it elsewhere, and so does a
    target where the run was resumed with another. But of several centres, the target also says which is kept.
    """
    if summary.get("solved") and summary.get("center") is not None:
        return {}
    return {**_COUNTED, "generations": updates_of(summary) or 0}


def _again(folder: RunFolder, config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """The command that gives the run's bits again."""
    changes = same_again(summary)
    if changes.get("generations") == 0:
        return (
            f"It ended by {summary['stop_reason']} before the first update: there is nothing to have again."
        )
    of, settings = "", "these settings"
    if changes:
        count = changes["generations"]
        of = f" Its {counted(count, 'update')} are counted, so that nothing else ends it."
        settings += f", but `generations={count}` and no other limit and no target"
    if summary.get("center") is not None and summary["stop_reason"] == "interrupted":
        of += " Another of the centres may be kept: the last evaluation chooses it, and this run had none."
    if config.get("run") == "evolve":
        return f"`escalade.evolve` with {settings}, and the same module and fitness, gives the same bits.{of}"
    if summary.get("network") == "own":
        settings += ", `preset=None`"
        return f"`escalade.train` with {settings} and the same `network` gives the same bits.{of}"
    if script := of_a_script(config):
        settings += ", `preset=None`"
        there = f"In the script that has {script[0].partition(':')[2]}"
        return f"{there}, `escalade.train` with {settings} gives the same bits.{of}"
    name = folder.path.resolve().name  # of "." too
    given = {"config": f"{name}/config.toml", "preset": "none"}
    given |= {
        key.replace("_", "-"): "none" if value is None else str(value) for key, value in changes.items()
    }
    given["run-dir"] = f"{name}-again"
    flags = " ".join(f"--{flag} {shlex.quote(value)}" for flag, value in given.items())
    name = shlex.quote(name)
    return "\n".join(
        [
            f"From the folder above this one; the same versions on the same machine give the same bits.{of}",
            "",
            f"    escalade train {flags}",
            f"    escalade eval {name}",
            f"    escalade resume {name}",
        ]
    )
