"""Commands: parse, call, print."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from escalade import __version__
from escalade.api.warm import warm_up_for
from escalade.config.conversion import Values, convert, read_toml
from escalade.config.files import read_config
from escalade.config.names import flag
from escalade.config.options import OPTIONS, Config
from escalade.errors import EscaladeError, InputError, nearest
from escalade.storage.files import discard_in_flight
from escalade.support.interrupts import Interrupts

if TYPE_CHECKING:
    from escalade.api.train import Run

_INTERRUPTED = 130
_OTHER_FLAGS = {"--config", "--preset", "--episodes", "--checkpoint", "--json", "--output", "--rounds"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 2 wrong input, 130 interrupted, 1 anything else."""
    try:
        parsed = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = parsed.command
        return command(parsed)
    except EscaladeError as problem:
        print(f"escalade: {problem}", file=sys.stderr)
        return problem.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def run() -> NoReturn:
    """The console script."""
    # An exception raised by a signal can be lost in whatever library is being imported; this cannot.
    # While a run is in training, the first Ctrl-C saves it instead: see escalade.support.interrupts.
    signal.signal(signal.SIGINT, lambda number, frame: _leave())
    Interrupts.leave = staticmethod(_leave)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a ± is no reason to end a run
    sys.exit(main())


def _leave() -> NoReturn:
    """End at once and leave nothing behind: workers end with this process by themselves."""
    discard_in_flight()
    os._exit(_INTERRUPTED)


class _Parser(argparse.ArgumentParser):
    """Errors are one line that names the input and, where there is one, its nearest."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (-[\w-]+)", message)
        if unknown:
            flags = {flag(name) for name in OPTIONS} | _OTHER_FLAGS
            message = f"unknown flag {unknown[1]} here{nearest(unknown[1], flags - {unknown[1]})}"
        raise InputError(f"{message} (see '{self.prog} --help')")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="escalade", description="Evolution strategies for PyTorch.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"escalade {__version__}")
    parser.set_defaults(command=lambda _: _help(parser))
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser)

    train = commands.add_parser("train", help="train a policy on an environment", allow_abbrev=False)
    train.add_argument("env", nargs="?", metavar="ENV", help="Gymnasium id, or package.module:Id-v0")
    train.add_argument("--config", metavar="FILE", help="TOML file of these options; flags win over it")
    train.add_argument("--preset", default="auto", help="auto (the environment's own), a name, or none")
    _add_options(train, [name for name in OPTIONS if name != "env"])
    train.set_defaults(command=_train)

    resume = commands.add_parser("resume", help="go on with a run, bit for bit", allow_abbrev=False)
    resume.add_argument("run", metavar="RUN", help="its folder")
    _add_options(resume, [name for name in OPTIONS if name != "env"])
    resume.set_defaults(command=_resume)

    evaluate = commands.add_parser("eval", help="mean return over fresh episodes", allow_abbrev=False)
    evaluate.add_argument("run", metavar="RUN", help="its folder")
    evaluate.add_argument("--episodes", default="100", help="how many (100)")
    evaluate.add_argument("--checkpoint", default="latest", help="latest, best, or a generation")
    evaluate.add_argument("--json", action="store_true", help="print one JSON object")
    _add_options(evaluate, ["seed", "workers", "backend"])
    evaluate.set_defaults(command=_evaluate)

    render = commands.add_parser("render", help="film an episode", allow_abbrev=False)
    render.add_argument("run", metavar="RUN", help="its folder")
    render.add_argument("--output", metavar="FILE", help="x.mp4 or x.gif (video.mp4 in the run folder)")
    render.add_argument("--checkpoint", default="best", help="best, latest, or a generation")
    render.add_argument("--max-steps", help="stop filming after this many steps")
    _add_options(render, ["seed"])
    render.set_defaults(command=_render)

    plot = commands.add_parser("plot", help="draw learning curves", allow_abbrev=False)
    plot.add_argument("runs", metavar="RUN", nargs="+", help="run folders")
    plot.add_argument("--output", metavar="FILE", default="curve.png", help="png, pdf or svg (curve.png)")
    plot.set_defaults(command=_plot)

    presets = commands.add_parser("presets", help="environments with tuned settings", allow_abbrev=False)
    presets.set_defaults(command=_presets)

    bench = commands.add_parser("bench", help="training speed against the raw simulator", allow_abbrev=False)
    bench.add_argument("env", metavar="ENV", help="Gymnasium id")
    bench.add_argument("--preset", default="auto", help="auto (the environment's own), a name, or none")
    bench.add_argument("--rounds", default="5", help="alternating turns (5)")
    bench.add_argument("--turn-seconds", default="3", help="length of a turn (3)")
    bench.add_argument("--json", action="store_true", help="print one JSON object")
    _add_options(bench, [name for name in OPTIONS if name != "env"])
    bench.set_defaults(command=_bench)
    return parser


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _add_options(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Config's options as flags; those not given leave no trace, so that presets show through."""
    for name in names:
        option = OPTIONS[name]
        shown = option.metadata["help"].replace("%", "%%")
        if option.type == "bool":
            parser.add_argument(
                flag(name), action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=shown
            )
        else:
            parser.add_argument(flag(name), default=argparse.SUPPRESS, metavar="VALUE", help=shown)


def _given(parsed: argparse.Namespace, but: Sequence[str] = ()) -> Values:
    """The config options among what was parsed, converted."""
    return {
        name: convert(name, value, text=isinstance(value, str))
        for name, value in vars(parsed).items()
        if name in OPTIONS and name not in but and value is not None
    }


def _whole(name: str, text: str | None, least: int) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{name} {text!r} must be a whole number of at least {least}")
    return int(text)


def _config(parsed: argparse.Namespace) -> Config:
    """Defaults, then preset, then file, then flags."""
    from escalade.config import presets

    file = read_toml(Path(parsed.config)) if getattr(parsed, "config", None) else {}
    flags = _given(parsed)
    given = file | flags
    preset = presets.options(given.get("env") or "", parsed.preset, given.get("strategy"))
    return Config(**(preset | given))


def _train(parsed: argparse.Namespace) -> int:
    config = _config(parsed)
    warm_up_for(config)
    from escalade.api.train import train_config

    return _report(train_config(config))


def _resume(parsed: argparse.Namespace) -> int:
    from escalade.storage.run_folder import RunFolder

    config = read_config(RunFolder.open(parsed.run))
    changes = _given(parsed)
    warm_up_for(config)
    from escalade.api.train import resume

    return _report(resume(parsed.run, **changes))


def _report(run: Run) -> int:
    summary = run.summary
    if summary["eval_return_mean"] is not None:
        print(
            f"return {summary['eval_return_mean']:.1f} ± {summary['eval_return_std']:.1f} over "
            f"{summary['eval_episodes']} episodes, {summary['env_steps']:,} steps, {summary['seconds']:.1f} s"
        )
    words = {
        "solved": f"solved: {summary['env']} reached its target of {summary['target_return']}",
        "callback": "stopped by a callback",
        "interrupted": f"interrupted; go on with: escalade resume {run.folder.path}",
    }
    print(
        words.get(
            summary["stop_reason"], f"stopped: --{summary['stop_reason'].replace('_', '-')} was reached"
        )
    )
    print(f"run folder: {run.folder.path}")
    return _INTERRUPTED if summary["stop_reason"] == "interrupted" else 0


def _evaluate(parsed: argparse.Namespace) -> int:
    from escalade.storage.run_folder import RunFolder

    config = read_config(RunFolder.open(parsed.run))
    episodes = _whole("--episodes", parsed.episodes, 1)
    given = _given(parsed)
    config.replace(**given)  # checks the values
    warm_up_for(config)
    from escalade.api.evaluate import evaluate

    result = evaluate(parsed.run, episodes=episodes or 100, checkpoint=parsed.checkpoint, **given)
    facts = {
        "env": config.env,
        "checkpoint": parsed.checkpoint,
        "episodes": len(result.returns),
        "return_mean": result.mean,
        "return_std": result.std,
        "return_min": float(result.returns.min()),
        "return_max": float(result.returns.max()),
        "episode_length_mean": float(result.lengths.mean()),
    }
    if parsed.json:
        print(json.dumps(facts))
    else:
        print(
            f"{config.env}: return {result.mean:.2f} ± {result.std:.2f} over {len(result.returns)} episodes"
        )
    return 0


def _render(parsed: argparse.Namespace) -> int:
    from escalade.storage.run_folder import RunFolder

    folder = RunFolder.open(parsed.run)
    output = Path(parsed.output) if parsed.output else folder.path / "video.mp4"
    most = _whole("--max-steps", parsed.max_steps, 1)
    given = _given(parsed)
    read_config(folder).replace(**given)  # checks the values
    from escalade.api.evaluate import render

    total, steps = render(parsed.run, output, checkpoint=parsed.checkpoint, max_steps=most, **given)
    print(f"{output}: {steps} steps, return {total:.1f}")
    return 0


def _plot(parsed: argparse.Namespace) -> int:
    from escalade.media.curves import plot_runs
    from escalade.storage.run_folder import RunFolder

    folders = [RunFolder.open(run) for run in parsed.runs]
    configs = [read_config(folder) for folder in folders]
    targets = {config.target_return for config in configs}
    target = targets.pop() if len(targets) == 1 else None
    title = ", ".join(dict.fromkeys(config.env for config in configs))
    plot_runs([folder.path for folder in folders], Path(parsed.output), target, title)
    print(parsed.output)
    return 0


def _presets(parsed: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from escalade.config import presets

    table = Table("environment", "strategy", "target", "solved", "steps", "seconds", box=None)
    for name in presets.names():
        preset = presets.read(name)
        result = preset.result
        table.add_row(
            name,
            str(preset.options["strategy"]),
            f"{preset.options['target_return']:g}",
            f"{result['solved']} of {result['seeds']} seeds",
            f"{result['env_steps']:,}",
            f"{result['seconds']:.1f}",
        )
    Console().print(table)
    print("steps and seconds: medians over the seeds that solved it; see benchmarks/presets.md")
    return 0


def _bench(parsed: argparse.Namespace) -> int:
    rounds = _whole("--rounds", parsed.rounds, 1)
    seconds = convert("seconds", parsed.turn_seconds, text=True)
    config = _config(parsed)
    warm_up_for(config)
    from escalade.api.bench import bench

    quiet = (lambda line: None) if parsed.json else print
    found = bench(config, seconds=seconds, rounds=rounds or 5, report=quiet)
    if parsed.json:
        print(json.dumps({"env": config.env} | vars(found)))
    else:
        print(
            f"{config.env} on {found.backend}, {found.workers} workers, population {found.population}, "
            f"{found.slots} slots each: {found.useful:,.0f} useful of {found.raw:,.0f} raw steps/s, "
            f"ratio {found.ratio:.2f} (medians of {found.rounds})"
        )
    return 0
