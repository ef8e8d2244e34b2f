"""The commands by name, and the ways to train that a wing adds. A new command is one file and one entry here.

A command's home is a function that adds its parser; the module is imported when the command is typed.
"""

from __future__ import annotations

from typing import Final

from escalade.support.registry import Entry

COMMANDS: Final[dict[str, Entry]] = {
    "train": Entry("train a policy on an environment", "escalade.cli.training:add_train"),
    "resume": Entry(
        "go on with a run, bit for bit, from its latest checkpoint", "escalade.cli.training:add_resume"
    ),
    "watch": Entry(
        "follow a run from another terminal, by its folder", "escalade.wings.analysis.commands:add_watch"
    ),
    "eval": Entry(
        "evaluate a run's unperturbed policy: its mean return over fresh episodes",
        "escalade.cli.results:add_eval",
    ),
    "render": Entry(
        "film an episode of a run's unperturbed policy, or show it in a window",
        "escalade.cli.results:add_render",
    ),
    "export": Entry(
        "write a run's policy into a file that needs no Escalade",
        "escalade.wings.publish.commands:add_export",
    ),
    "plot": Entry("draw the learning curves of runs", "escalade.wings.analysis.commands:add_plot"),
    "compare": Entry(
        "print tables of how runs ended, and the options in which they differ",
        "escalade.wings.analysis.commands:add_compare",
    ),
    "sweep": Entry(
        "search for good options of train: many short runs, suggested by Optuna",
        "escalade.wings.many_runs.commands:add_sweep",
    ),
    "report": Entry("write all about runs into one HTML file", "escalade.wings.analysis.commands:add_report"),
    "presets": Entry(
        "list the presets, tuned settings and those of earlier systems, or show one of them",
        "escalade.cli.reference:add_presets",
    ),
    "environments": Entry(
        "list the environments that are installed, by family", "escalade.cli.environments:add_environments"
    ),
    "bench": Entry(
        "measure the speed of training against that of the raw simulator", "escalade.cli.reference:add_bench"
    ),
    "check": Entry(
        "try whether an environment can be trained on, and how fast it is", "escalade.cli.check:add_check"
    ),
    "zoo": Entry(
        "list the trained policies that come with Escalade", "escalade.wings.publish.commands:add_zoo"
    ),
    "push": Entry(
        "upload a run's policy to a repository of Hugging Face", "escalade.wings.publish.commands:add_push"
    ),
    "pull": Entry(
        "download a policy that 'escalade push' uploaded", "escalade.wings.publish.commands:add_pull"
    ),
    "attach": Entry(
        "follow a detached run; Ctrl-C leaves it running", "escalade.wings.cluster.commands:add_attach"
    ),
    "stop": Entry(
        "end a detached run after the generation it is in, saved", "escalade.wings.cluster.commands:add_stop"
    ),
}
"""The order is that of ``escalade --help``."""

MODES: Final[dict[str, Entry]] = {
    "detached": Entry("a run that a cluster leads", "escalade.wings.cluster.commands"),
    "series": Entry("several runs", "escalade.wings.many_runs.commands"),
}
"""Ways to train besides one run in this process: modules with the functions of
:class:`escalade.cli.training.Mode`. They exclude each other."""
