"""Check that runs of random configurations are bit-identical under kills, resumes and numbers of workers.

    python benchmarks/fuzz_runs.py --count 40 --seed 0

Draws valid configurations, and trains each with the real command: with 0, 1 and 2 workers, and with 2
workers while workers and the whole run are killed and the run is resumed. All must end with the same summary,
which includes ``params_sha256``, and the same rows of progress.csv, except for times. Prints a line per
configuration. The first difference exits with code 1, and prints the command that reproduces it and
the run folders.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from torch import nn

from determinism import command, generations_done, kill_a_worker, summary
from escalade.config.commands import train_command
from escalade.config.options import Config
from escalade.envs.backends import BACKENDS
from escalade.strategies import Strategy
from escalade.strategies.registry import STRATEGIES
from escalade.strategies.shaping import SHAPINGS

LENGTHS = {"CartPole-v1": 60, "Pendulum-v1": 40, "HalfCheetah-v5": 25, "Acrobot-v1": 50}
BOXES = ("Pendulum-v1", "HalfCheetah-v5")
HERE = Path(__file__).parent
OWN = "fuzz_runs:odd_sizes"
POLICIES = ("linear", "mlp", "quadratic", "gru", "lstm", OWN)
GENERATIONS = 30
KILLS = 3  # of the whole run
TIMED = ("seconds", "steps_per_second")

Values = dict[str, Any]


def odd_sizes(inputs: int, outputs: int) -> nn.Module:
    """A user's torch module with sizes at which the position of a row once changed its result."""
    layers = nn.Linear(inputs, 17), nn.Softplus(), nn.Linear(17, 33), nn.Tanh(), nn.Linear(33, outputs)
    return nn.Sequential(*layers)


def draw(seed: int, index: int) -> Config:
    """Return configuration ``index`` of ``seed``: strategies in turn, all other options at random."""
    chance = random.Random(f"{seed}/{index}")
    names = list(STRATEGIES)
    env = chance.choice(list(LENGTHS))
    values: Values = {
        "env": env,
        "backend": chance.choice(("gymnasium", "envpool")),
        "strategy": names[(seed + index) % len(names)],
        "max_episode_steps": LENGTHS[env],
        "population": chance.choice((10, 12, 16, 22)),
        "seed": chance.randrange(2**31),
        "generations": GENERATIONS,
        "eval_every": chance.choice((1, 2, 3, 7)),
        "eval_episodes": chance.choice((1, 3, 8)),
        "episodes_per_member": chance.choice((1, 1, 2, 3)),
        "episode_seeds": chance.choice(("pair", "generation", "member")),
        "snapshot_every": chance.choice((0, 1, 4, 50)),
        "normalize_observations": chance.choice((True, False)),
        "observation_clip": chance.choice((5.0, 1.5, "none")),
        "weight_penalty": chance.choice((0.0, 0.0, 0.1)),
        "fresh_environments": chance.random() < 0.1,
        "cutoff": chance.choice((None, None, 20, "mean:1.5", "adaptive:10,0.5,1.5")),
    }
    values |= _policy(chance, env) | _search(chance, values) | _rewards(chance)
    if not STRATEGIES[values["strategy"]].load().compares_generations:
        values |= _novelty(chance)
    elif isinstance(values["cutoff"], str):  # it moves: refused, as is novelty
        values["cutoff"] = None
    needs_python = values["fresh_environments"] or "early_end" in values
    if needs_python or not BACKENDS[values["backend"]].installed:
        values["backend"] = "gymnasium"
    return Config(**values)


def _policy(chance: random.Random, env: str) -> Values:
    policy = chance.choice(POLICIES)
    values: Values = {"policy": policy}
    if policy != OWN:
        values["init"] = chance.choice(("normc", "xavier", "orthogonal", "zeros"))
    if policy in ("mlp", "gru", "lstm"):
        values["hidden"] = chance.choice(((4,), (8,), (6, 5)))
        values["activation"] = chance.choice(("tanh", "relu", "elu", "selu"))
    if policy != OWN:
        values["bias"] = chance.choice((True, True, False))
    if env in BOXES:
        values["head"] = chance.choice(("plain", "plain", "uniform:5", "custom:-0.5,0,0.5"))
        if values["head"] == "plain":
            values["action_noise"] = chance.choice((0.0, 0.0, 0.2))
            values["action_map"] = chance.choice(("clip", "rescale", "tanh", "sigmoid"))
    return values


def _search(chance: random.Random, drawn: Values) -> Values:
    """Return the strategy's options: step sizes, optimizers, shaping and growth."""
    entry = STRATEGIES[drawn["strategy"]]
    kind = entry.load()
    sigma: tuple[float | str, ...] = (0.1, 0.3)
    if kind.narrow is Strategy.narrow:  # it does not adapt sigma
        sigma += ("exponential:0.2:0.95:0.05", "linear:0.3:0.05:20", "step:0.2:0.5:8")
    values: Values = {"sigma": chance.choice(sigma)}
    if kind.low_rank:
        values["perturbation"] = chance.choice(("full", "low-rank:1", "low-rank:3"))
    if "lr" in entry.options:
        values["lr"] = chance.choice((None, 0.05, "cosine:0.1:0.01:20", "exponential:0.1:0.9"))
    own: Values = {}
    takes = inspect.signature(kind).parameters
    if "optimizer" in takes:
        own["optimizer"] = chance.choice((None, "adam", "sgd", "clipup"))
        own["weight_decay"] = chance.choice((0.0, 0.01))
        if own["optimizer"] in ("sgd", "clipup"):
            own["momentum"] = chance.choice((0.9, 0.5))
    if "shaping" in takes:
        own["shaping"] = chance.choice((None, *SHAPINGS))
    if "top_directions" in takes:
        own["top_directions"] = chance.choice((None, 2, drawn["population"] // 2))
    values["strategy_options"] = own
    if entry.grows and chance.random() < 0.3:
        grown = {"min_episodes": 40}, {"min_env_steps": 1000}, {"population": "linear:6:24:8"}
        values |= chance.choice(grown)
    if drawn["env"] == "CartPole-v1":
        values["target_return"] = chance.choice((None, 50.0))
    return values


def _novelty(chance: random.Random) -> Values:
    if chance.random() < 0.5:
        return {}
    return {
        "behavior": chance.choice(("observation:0", "observation:1,0:every=7")),
        "novelty": chance.choice(("ns:k=3", "nsr", "nsr:centers=3", "nsra:centers=3,weight=0.5,patience=1")),
    }


def _rewards(chance: random.Random) -> Values:
    plain: Values = {}
    bounded = {"reward": "shift=0.5,floor=-1"}
    return chance.choice((plain, plain, plain, bounded, bounded, {"early_end": 9}))


def train(config: Config, workers: int, folder: Path) -> list[str]:
    """Return the command as a list of words."""
    words = shlex.split(train_command(config))[1:]
    return command(*words, "--workers", str(workers), "--run-dir", str(folder))


def run(words: list[str]) -> None:
    done = subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode} of {' '.join(words)}\n{done.stderr}")


def disturbed(words: list[str], folder: Path, chance: random.Random) -> tuple[int, int]:
    """Train while killing workers and, ``KILLS`` times, the run. Return the counts of both."""
    deaths = 0
    for kills in range(KILLS):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        words = command("resume", str(folder))
        watched, reached = psutil.Process(process.pid), generations_done(folder)
        for _ in range(2):
            reached += chance.choice((1, 2, 4))
            while generations_done(folder) < reached and process.poll() is None:
                time.sleep(0.001)
            deaths += kill_a_worker(watched, chance)
        time.sleep(chance.uniform(0, 0.1))
        if process.poll() is None:
            process.kill()
            process.wait()
        elif process.returncode:
            raise SystemExit(f"exit code {process.returncode}: {shlex.join(process.args)}")
        else:
            return kills, deaths
    run(words)
    return KILLS, deaths


def outcome(folder: Path) -> list[Values]:
    """Return the summary and the rows without times and workers; they must be equal."""
    whole = {name: value for name, value in summary(folder).items() if name not in (*TIMED, "workers")}
    with (folder / "progress.csv").open(newline="") as file:
        rows = [{name: row[name] for name in row if name not in TIMED} for row in csv.DictReader(file)]
    return [whole, *rows]


def difference(first: list[Values], second: list[Values]) -> str | None:
    """Describe the first difference of two outcomes. Return None if they are equal."""
    for one, other in zip(first[1:], second[1:], strict=False):
        for name in one:
            if one[name] != other.get(name):
                return f"{name} of generation {one['generation']} is {one[name]} and {other.get(name)}"
    if len(first) != len(second):
        return f"there are {len(first) - 1} and {len(second) - 1} rows"
    for name, value in first[0].items():
        if repr(value) != repr(second[0].get(name)):  # NaN equals itself here
            return f"{name} is {value} and {second[0].get(name)}"
    return None


def check(config: Config, base: Path, chance: random.Random) -> tuple[str, str | None]:
    """Run one configuration in all ways. Return a line about it, and the first difference or None."""
    for workers in (0, 1, 2):
        run(train(config, workers, base / f"workers-{workers}"))
    kills, deaths = disturbed(train(config, 2, base / "killed"), base / "killed", chance)
    reference = outcome(base / "workers-0")
    said = f"{reference[0]['params_sha256'][:16]}, killed {kills} times, {deaths} workers killed"
    for name in ("workers-1", "workers-2", "killed"):
        found = difference(reference, outcome(base / name))
        if found is not None:
            return said, f"workers-0 and {name} differ: {found}"
    return said, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=40, help="configurations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this configuration alone, by its number")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    chosen = range(arguments.count) if arguments.only is None else [arguments.only]
    for index in chosen:
        config = draw(arguments.seed, index)
        base = Path(tempfile.mkdtemp(prefix="escalade-fuzz-"))
        said, found = check(config, base, random.Random(f"kills {arguments.seed}/{index}"))
        print(f"{index}: {said}: {train_command(config)}", flush=True)
        if found is not None:
            again = f"{Path(sys.argv[0])} --seed {arguments.seed} --only {index}"
            raise SystemExit(f"{found}\nonce more: python {again}\nrun folders: {base}")
        shutil.rmtree(base)
    print(f"{len(chosen)} configurations of seed {arguments.seed}, all equal")


if __name__ == "__main__":
    main()
