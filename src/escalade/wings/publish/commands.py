"""The commands ``export``, ``zoo``, ``push`` and ``pull``."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from typing import Any

from escalade.cli.arguments import add_argument, add_command
from escalade.cli.results import LATEST, policy_called
from escalade.config import presets
from escalade.config.commands import words
from escalade.config.files import read_config
from escalade.storage.run_folder import ZOO_PREFIX, RunFolder, zoo_names
from escalade.storage.tensors import read, with_prefix
from escalade.support.numbers import number
from escalade.support.output import printing, say


def add_export(commands: Any) -> None:
    """``escalade export``."""
    parser = add_command(
        commands,
        "export",
        "RUN",
        _export,
        more="Normaliser and action map are inside. Before the file is kept, 1,000 observations must\n"
        "give what the policy gives, to 1e-5.",
        examples=["runs/CartPole-v1/first --output agent.pt2"],
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run, a policy's file, or zoo:NAME")
    add_argument(
        parser, "--format", "{onnx,torchscript,torch-export}", "kind of file", "as FILE ends, or onnx"
    )
    add_argument(parser, "--output", "FILE", "the file", "in the run's folder")
    add_argument(parser, "--checkpoint", "best|latest|GENERATION", "whose policy", LATEST)
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: a line of text)")


def _export(parsed: argparse.Namespace) -> int:
    from escalade.wings.publish.export import OBSERVATIONS, export

    checkpoint = parsed.checkpoint or LATEST
    made = export(parsed.run, parsed.format, output=parsed.output, checkpoint=checkpoint)
    of = None if os.path.isfile(parsed.run) else checkpoint
    if parsed.json:
        facts = {"path": str(made.path), "checkpoint": of, "largest_difference": made.largest_difference}
        first = made.state and str(made.state)
        say(json.dumps(facts | {"observations": OBSERVATIONS, "first_state": first}))
        return 0
    apart = f"{made.largest_difference:.2g}"
    whose = "policy" if of is None else policy_called(of)
    say(f"{made.path}: differs from the {whose} by {apart} at most, on {OBSERVATIONS:,} observations")
    if made.state is not None:
        say(f"{made.state}: the state that an episode begins with")
    return 0


def add_zoo(commands: Any) -> None:
    """``escalade zoo``."""
    parser = add_command(
        commands,
        "zoo",
        "",
        _zoo,
        more="Their names, such as zoo:CartPole-v1, stand wherever a run is read: eval, render, export,\n"
        "train --from, push.",
        examples=["", "--json"],
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list (default: a table)")


def add_push(commands: Any) -> None:
    """``escalade push``."""
    more = "The repository holds policy, config, a model card, and the film that 'escalade render' made."
    examples = ["runs/CartPole-v1/first someone/cartpole", "zoo:HalfCheetah-v5 someone/cheetah"]
    parser = add_command(commands, "push", "RUN REPO", _push, more=more, examples=examples)
    parser.add_argument("run", metavar="RUN", help="folder of the run, or zoo:NAME")
    parser.add_argument("repo", metavar="REPO", help="the repository, OWNER/NAME; made where there is none")


def add_pull(commands: Any) -> None:
    """``escalade pull``."""
    more = "The folder can be given to eval, render, export and train --from. What names code is refused."
    parser = add_command(
        commands, "pull", "REPO", _pull, more=more, examples=["someone/cartpole --output cartpole"]
    )
    parser.add_argument("repo", metavar="REPO", help="the repository, OWNER/NAME")
    add_argument(parser, "--output", "FOLDER", "a new folder", "the repository's NAME, here")


def _zoo(parsed: argparse.Namespace) -> int:
    listed = [facts(name) for name in zoo_names()]
    if parsed.json:
        say(json.dumps(listed))
        return 0
    from rich.console import Console
    from rich.table import Column, Table

    titles = ("name", "strategy", "target", "return", "weights", "bytes")
    columns = (*(Column(title, no_wrap=True) for title in titles), Column("environment"))
    table = Table(*columns, box=None, pad_edge=False)
    for found in listed:
        env = found["env"] + (f" {json.dumps(found['env_kwargs'])}" if found["env_kwargs"] else "")
        score = f"{number(found['return_mean'])} ± {number(found['return_std'])}"
        sizes = (f"{found[key]:,}" for key in ("parameters", "bytes"))
        table.add_row(found["name"], found["strategy"], number(found["target_return"]), score, *sizes, env)
    with printing():
        Console(width=120, emoji=False).print(table)  # of narrower terminals, lines go on below
    say("Mean and deviation of 100 fresh episodes: 'escalade eval NAME' plays them again.")
    return 0


def facts(name: str) -> dict[str, Any]:
    """A policy in numbers: its task, score, size, and the command that trained it."""
    folder = RunFolder.open(ZOO_PREFIX + name)
    config, summary = read_config(folder), folder.read_summary()
    weights = with_prefix("network.", read(folder.policy).tensors)
    target = presets.read(name).options["target_return"]
    given: dict[str, Any] = {"env_kwargs": config.env_kwargs} if config.env_kwargs else {}
    given["seed"] = config.seed
    if config.target_return != target:  # docs/zoo.md says why
        given["target_return"] = config.target_return
    typed = ["escalade", "train", config.env]
    for option, value in given.items():
        typed += words(option, value)
    return {
        "name": ZOO_PREFIX + name,
        "env": config.env,
        "env_kwargs": config.env_kwargs,
        "strategy": config.strategy,
        "target_return": target,
        "return_mean": summary["eval_return_mean"],
        "return_std": summary["eval_return_std"],
        "episodes": summary["eval_episodes"],
        "seed": config.seed,
        "command": shlex.join(typed),
        "parameters": sum(weight.size for weight in weights.values()),
        "bytes": folder.policy.stat().st_size,
        "params_sha256": summary["params_sha256"],
    }


def _push(parsed: argparse.Namespace) -> int:
    from escalade.wings.publish.hub import push

    say(push(parsed.run, parsed.repo))
    return 0


def _pull(parsed: argparse.Namespace) -> int:
    from escalade.wings.publish.hub import pull

    folder = pull(parsed.repo, parsed.output)
    say(f"{folder}: play it with 'escalade eval {shlex.quote(str(folder))}'")
    return 0
