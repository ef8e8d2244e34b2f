"""The commands by name, and the ways to train that a wing adds. A new command is one file and one entry here.

The function ``add_NAME`` of a command's module adds its parser; the module is imported when the command is
typed.
"""

from __future__ import annotations

from typing import Final

from escalade.support.registry import Entry

_TITLES: Final[dict[str, tuple[str, str]]] = {
    "train": ("cli.training", "train a policy on an environment"),
    "resume": ("cli.training", "go on with a run, bit for bit, from its latest checkpoint"),
    "watch": ("wings.analysis.watch", "follow a run from another terminal, by its folder"),
    "eval": ("cli.results", "evaluate a run's unperturbed policy: its mean return over fresh episodes"),
    "render": ("cli.results", "film an episode of a run's unperturbed policy, or show it in a window"),
    "export": ("wings.publish.commands", "write a run's policy into a file that needs no Escalade"),
    "plot": ("wings.analysis.commands", "draw the learning curves of runs"),
    "compare": (
        "wings.analysis.commands",
        "print tables of how runs ended, and the options in which they differ",
    ),
    "sweep": (
        "wings.many_runs.commands",
        "search for good options of train: many short runs, suggested by Optuna",
    ),
    "report": ("wings.analysis.commands", "write all about runs into one HTML file"),
    "presets": (
        "cli.presets",
        "list the presets, tuned settings and those of earlier systems, or show one of them",
    ),
    "environments": ("wings.checking.commands", "list the environments that are installed, by family"),
    "bench": ("wings.checking.commands", "measure the speed of training against that of the raw simulator"),
    "check": ("wings.checking.commands", "try whether an environment can be trained on, and how fast it is"),
    "zoo": ("wings.publish.commands", "list the trained policies that come with Escalade"),
    "push": ("wings.publish.commands", "upload a run's policy to a repository of Hugging Face"),
    "pull": ("wings.publish.commands", "download a policy that 'escalade push' uploaded"),
    "attach": ("wings.cluster.commands", "follow a detached run; Ctrl-C leaves it running"),
    "stop": ("wings.cluster.commands", "end a detached run after the generation it is in, saved"),
}
"""Each command's module and title. The order is that of ``escalade --help``."""

COMMANDS: Final = {
    name: Entry(title, f"escalade.{module}:add_{name}") for name, (module, title) in _TITLES.items()
}

MODES: Final[dict[str, Entry]] = {
    "detached": Entry("a run that a cluster leads", "escalade.wings.cluster.commands"),
    "series": Entry("several runs", "escalade.wings.many_runs.commands"),
}
"""Ways to train besides one run in this process: modules with the functions of
:class:`escalade.cli.training.Mode`. They exclude each other."""
