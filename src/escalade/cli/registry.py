"""Registry of the commands, and of the ways to train that wings add.

A new command is one file and one entry here. The function ``add_NAME`` of its module adds the parser; the
module is imported when the command is typed.
"""

from __future__ import annotations

from typing import Final

from escalade.support.registry import Entry

_TITLES: Final[dict[str, tuple[str, str]]] = {
    "train": ("cli.training", "train a policy on an environment"),
    "resume": ("cli.training", "resume a run from its latest checkpoint; the result is bit-identical"),
    "watch": ("wings.analysis.watch", "follow the progress of a run from another terminal"),
    "eval": ("cli.results", "evaluate a run's policy on fresh episodes"),
    "render": ("cli.results", "film an episode of a run's policy, or show it in a window"),
    "export": ("wings.publish.commands", "export a run's policy to a file that needs no Escalade"),
    "plot": ("wings.analysis.commands", "draw the learning curves of runs"),
    "compare": (
        "wings.analysis.commands",
        "print a table of the results of runs, and the options in which they differ",
    ),
    "sweep": (
        "wings.many_runs.commands",
        "search for good training options with many short runs, suggested by Optuna",
    ),
    "report": ("wings.analysis.commands", "write a report on runs as one HTML file"),
    "presets": (
        "cli.presets",
        "list the presets (tuned settings and those of earlier systems), or show one",
    ),
    "environments": ("wings.checking.commands", "list the installed environments by family"),
    "bench": ("wings.checking.commands", "measure the speed of training and of the raw simulator"),
    "check": ("wings.checking.commands", "check an environment before training, and measure its speed"),
    "zoo": ("wings.publish.commands", "list the trained policies that come with Escalade"),
    "push": ("wings.publish.commands", "upload a run's policy to a Hugging Face repository"),
    "pull": ("wings.publish.commands", "download a policy that 'escalade push' uploaded"),
    "attach": ("wings.cluster.commands", "follow a detached run; Ctrl-C leaves it running"),
    "stop": ("wings.cluster.commands", "save and stop a detached run after its current generation"),
}
"""Each command's module and title. The order is that of ``escalade --help``."""

COMMANDS: Final = {
    name: Entry(title, f"escalade.{module}:add_{name}") for name, (module, title) in _TITLES.items()
}

MODES: Final[dict[str, Entry]] = {
    "detached": Entry("a run whose driver is on a cluster", "escalade.wings.cluster.commands"),
    "series": Entry("several runs", "escalade.wings.many_runs.commands"),
}
"""Modules with ways to train other than one run in this process.

Each has the functions of :class:`escalade.cli.training.Mode`. At most one may be selected.
"""
