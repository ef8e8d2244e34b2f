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
from escalade.support.output import print_line, printing


def add_export(commands: Any) -> None:
    """Add the command ``export``."""
    parser = add_command(
        commands,
        "export",
        "RUN",
        _export,
        more="The file includes the normalizer and the action map. It is only written if its outputs equal\n"
        "those of the policy on 1,000 observations, with a tolerance of 1e-5.",
        examples=["runs/CartPole-v1/first --output agent.pt2"],
    )
    parser.add_argument("run", metavar="RUN", help="run folder, policy file, or zoo:NAME")
    formats = "{onnx,torchscript,torch-export}"
    add_argument(parser, "--format", formats, "file format", "by the extension of FILE, or onnx")
    add_argument(parser, "--output", "FILE", "output file", "in the run folder")
    add_argument(parser, "--checkpoint", "best|latest|GENERATION", "checkpoint of the policy", LATEST)
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: a line of text)")


def _export(parsed: argparse.Namespace) -> int:
    from escalade.wings.publish.export import OBSERVATIONS, export

    checkpoint = parsed.checkpoint or LATEST
    made = export(parsed.run, parsed.format, output=parsed.output, checkpoint=checkpoint)
    of = None if os.path.isfile(parsed.run) else checkpoint
    if parsed.json:
        facts = {"path": str(made.path), "checkpoint": of, "largest_difference": made.largest_difference}
        first = made.state and str(made.state)
        print_line(json.dumps(facts | {"observations": OBSERVATIONS, "first_state": first}))
        return 0
    apart = f"{made.largest_difference:.2g}"
    whose = "policy" if of is None else policy_called(of)
    print_line(f"{made.path}: differs from the {whose} by at most {apart} on {OBSERVATIONS:,} observations")
    if made.state is not None:
        print_line(f"{made.state}: initial state of an episode")
    return 0


def add_zoo(commands: Any) -> None:
    """Add the command ``zoo``."""
    parser = add_command(
        commands,
        "zoo",
        "",
        _zoo,
        more="Names such as zoo:CartPole-v1 can replace a run folder in eval, render, export, push and\n"
        "train --from.",
        examples=["", "--json"],
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list (default: a table)")


def add_push(commands: Any) -> None:
    """Add the command ``push``."""
    more = "Uploads the policy, the config, a model card, and the film of 'escalade render' if there is one."
    examples = ["runs/CartPole-v1/first someone/cartpole", "zoo:HalfCheetah-v5 someone/cheetah"]
    parser = add_command(commands, "push", "RUN REPO", _push, more=more, examples=examples)
    parser.add_argument("run", metavar="RUN", help="run folder, or zoo:NAME")
    parser.add_argument("repo", metavar="REPO", help="repository, as OWNER/NAME; created if needed")


def add_pull(commands: Any) -> None:
    """Add the command ``pull``."""
    more = "Use the folder with eval, render, export and train --from. Configs that name code are rejected."
    parser = add_command(
        commands, "pull", "REPO", _pull, more=more, examples=["someone/cartpole --output cartpole"]
    )
    parser.add_argument("repo", metavar="REPO", help="repository, as OWNER/NAME")
    add_argument(parser, "--output", "FOLDER", "new folder", "NAME in the working folder")


def _zoo(parsed: argparse.Namespace) -> int:
    policies = [facts(name) for name in zoo_names()]
    if parsed.json:
        print_line(json.dumps(policies))
        return 0
    from rich.console import Console
    from rich.table import Column, Table

    titles = ("name", "strategy", "target", "return", "weights", "bytes")
    columns = (*(Column(title, no_wrap=True) for title in titles), Column("environment"))
    table = Table(*columns, box=None, pad_edge=False)
    for found in policies:
        env = found["env"] + (f" {json.dumps(found['env_kwargs'])}" if found["env_kwargs"] else "")
        score = f"{number(found['return_mean'])} ± {number(found['return_std'])}"
        sizes = (f"{found[key]:,}" for key in ("parameters", "bytes"))
        table.add_row(found["name"], found["strategy"], number(found["target_return"]), score, *sizes, env)
    with printing():
        Console(width=120, emoji=False).print(table)  # narrower terminals wrap the lines
    print_line("Returns are mean ± deviation of 100 fresh episodes; to repeat them: escalade eval NAME")
    return 0


def facts(name: str) -> dict[str, Any]:
    """Return facts about a policy: its task, score, size, and the command that trained it."""
    folder = RunFolder.open(ZOO_PREFIX + name)
    config, summary = read_config(folder), folder.read_summary()
    weights = with_prefix("network.", read(folder.policy).tensors)
    tuned = presets.options(config.env, "auto", {"env_kwargs": config.env_kwargs}).get("target_return")
    options: dict[str, Any] = {"env_kwargs": config.env_kwargs} if config.env_kwargs else {}
    options["seed"] = config.seed
    if config.target_return != tuned:  # see docs/zoo.md
        options["target_return"] = config.target_return
    typed = ["escalade", "train", config.env]
    for option, value in options.items():
        typed += words(option, value)
    return {
        "name": ZOO_PREFIX + name,
        "env": config.env,
        "env_kwargs": config.env_kwargs,
        "strategy": config.strategy,
        "target_return": config.target_return if tuned is None else tuned,
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

    print_line(push(parsed.run, parsed.repo))
    return 0


def _pull(parsed: argparse.Namespace) -> int:
    from escalade.wings.publish.hub import pull

    folder = pull(parsed.repo, parsed.output)
    print_line(f"saved in {folder}; to evaluate it: escalade eval {shlex.quote(str(folder))}")
    return 0
