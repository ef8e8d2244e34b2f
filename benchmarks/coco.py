"""Share of COCO's 51 targets reached on its suites, compared with other packages.

    pip install escalade cma cmaes scipy
    pip install --no-deps coco-experiment      # cocoex; or with --target FOLDER, and FOLDER in PYTHONPATH
    python benchmarks/coco.py run bbob --dimensions 10 --per-dimension 2000 --names cma-es pycma cmaes
    python benchmarks/coco.py table
    python benchmarks/coco.py picture          # results/coco.png

``run`` adds a line to results/coco.jsonl for each run that is not there yet, and stops after ``--minutes`` of
processor time. Results that follow from a run with another budget are derived from that run. All begin a
search at the same points, drawn uniformly from [-4, 4) (bbob) or from the box (bbob-mixint), with a first
sigma of 2 or of 0.3 of the range, and their own defaults for everything else. A target is a distance to the
optimal value, from 1e2 to 1e-8, five to a factor of ten.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

import bbob
import escalade
import presets

RESULTS = Path(__file__).parent / "results" / "coco.jsonl"
PICTURE = RESULTS.with_suffix(".png")
TARGETS = 10 ** np.linspace(2, -8, 51)
GROUPS = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multimodal": range(15, 20),
    "weak structure": range(20, 25),
}
DRAWN = [("bbob", 5, 10_000, "ipop"), ("bbob", 10, 10_000, "ipop"), ("bbob", 20, 2000, "ipop")]
"""Settings in the picture: suite, dimension, evaluations a dimension, and restarts."""
SIGMA = 2.0
Rows = np.ndarray[Any, np.dtype[np.float64]]
Line = dict[str, Any]
Key = tuple[Any, ...]
BUDGETS = (2000, 10_000)
"""Evaluations a dimension in the tables, if there are runs with as many."""
KEYS = ("suite", "dimension", "budget", "restarts", "name", "function", "instance")


class Ended(BaseException):
    """Raised at the last target or at the end of the budget; packages catch every Exception."""


@dataclass
class Task:
    """A problem that takes rows, counts them, notes when targets are reached, and ends the search."""

    problem: Any
    optimum: float
    budget: int
    restarts: str
    seed: int
    starts: np.random.Generator

    def __post_init__(self) -> None:
        self.evaluations, self.reached = 0, []
        self.dimension, self.whole = self.problem.dimension, self.problem.number_of_integer_variables
        self.box = self.problem.lower_bounds, self.problem.upper_bounds

    def __call__(self, rows: Rows) -> Rows:
        return np.array([self.one(row) for row in np.asarray(rows, dtype=np.float64)])

    def one(self, x: Rows) -> float:
        value = float(self.problem(np.asarray(x, dtype=np.float64))) - self.optimum
        self.count(1, value)
        return value

    def count(self, evaluations: int, value: float) -> None:
        """Count evaluations, and record the targets reached by ``value``, the distance to the optimum."""
        self.evaluations += evaluations
        while len(self.reached) < len(TARGETS) and value <= TARGETS[len(self.reached)]:
            self.reached.append(self.evaluations)
        if len(self.reached) == len(TARGETS) or self.evaluations >= self.budget:
            raise Ended

    def rounded(self, rows: Rows) -> Rows:
        """Return the values, with rounding inside the function."""
        rows = np.array(rows, dtype=np.float64)
        whole = slice(None, self.whole)
        rows[..., whole] = np.clip(np.rint(rows[..., whole]), self.box[0][whole], self.box[1][whole])
        return self(rows) if rows.ndim == 2 else np.float64(self.one(rows))

    def start(self, *_: object) -> Rows:
        """Return the first point of the next search, which is the same for all packages."""
        low, high = self.box if self.whole else (-4.0, 4.0)
        return self.starts.uniform(low, high, self.dimension)

    def cells(self) -> tuple[Rows, Rows]:
        """Return the box in which every integer has a cell of the same size."""
        more = np.where(np.arange(self.dimension) < self.whole, 0.5 - 1e-9, 0)
        return self.box[0] - more, self.box[1] + more


Search = Callable[[Task], str]
"""Minimizes a task until :class:`Ended`, or until it stops for a reason of its own, which it returns."""


def ours(name: str) -> Search:
    """A strategy of Escalade; on bbob-mixint with ``integers``."""

    def search(task: Task) -> str:
        options: dict[str, Any] = {"sigma": SIGMA}
        if task.whole:
            options = {"bounds": task.box, "integers": range(task.whole)}
        return _optimize(task, task, name, options)

    return search


def ours_rounded(task: Task) -> str:
    return _optimize(task, task.rounded, "cma-es", {"bounds": task.cells()})


def _optimize(task: Task, function: Any, name: str, options: dict[str, Any]) -> str:
    restarts: Any = None if task.restarts == "none" else task.restarts
    found = escalade.optimize(
        function, task.start, name, restarts=restarts, vectorized=True, seed=task.seed, **options
    )
    return found.stop_reason


def pycma(task: Task, *, rounded: bool = False) -> str:
    import cma

    options: dict[str, Any] = {"seed": task.seed + 1, "verbose": -9, "verb_log": 0}  # seed 0 is the clock's
    sigma, function = SIGMA, task.one
    if task.whole:
        low, high = task.box
        sigma, options["CMA_stds"] = 1.0, 0.3 * (high - low)
        options["bounds"] = [list(bound) for bound in (task.cells() if rounded else task.box)]
        if rounded:
            function = task.rounded
        else:
            options["integer_variables"] = list(range(task.whole))
    again = {"none": 0, "ipop": 9, "bipop": 9}[task.restarts]
    _, es = cma.fmin2(function, task.start, sigma, options, restarts=again, bipop=task.restarts == "bipop")
    return ", ".join(es.stop())


def cmaes(task: Task) -> str:
    """Run cmaes, with a loop of ours for ipop."""
    from cmaes import CMA, CMAwM

    population = 4 + int(3 * np.log(task.dimension))
    for number in range(10 if task.restarts == "ipop" else 1):
        more = {"seed": task.seed + 1000 * number, "population_size": population * 2**number}
        if task.whole:
            low, high = task.box
            steps = np.where(np.arange(task.dimension) < task.whole, 1.0, 0.0)
            scale = float(np.exp(np.log(high - low).mean()))
            es: Any = CMAwM(
                mean=task.start(),
                sigma=0.3 * scale,
                bounds=np.stack([low, high], axis=1),
                steps=steps,
                **more,
            )
        else:
            es = CMA(mean=task.start(), sigma=SIGMA, **more)
        while not es.should_stop():
            told = []
            for _ in range(es.population_size):
                point = es.ask()
                point, learnt = point if task.whole else (point, point)
                told.append((learnt, task.one(point)))
            es.tell(told)
    return "stopped"


def scipy_de(task: Task) -> str:
    from scipy.optimize import differential_evolution

    low, high = task.box
    found = differential_evolution(
        task.one,
        list(zip(low, high, strict=True)),
        rng=task.seed,
        maxiter=10**6,
        x0=np.clip(task.start(), low, high),
        integrality=np.arange(task.dimension) < task.whole,
    )
    return str(found.message)


def nevergrad(task: Task) -> str:
    import nevergrad as ng

    space = ng.p.Array(init=task.start()).set_mutation(sigma=SIGMA)
    space.random_state.seed(task.seed)
    search = ng.optimizers.registry["NGOpt"](space, budget=task.budget)
    while True:
        point = search.ask()
        search.tell(point, task.one(point.value))


PEERS: dict[str, Search] = {
    "cma-es, rounded inside": ours_rounded,
    "pycma": pycma,
    "pycma, rounded inside": functools.partial(pycma, rounded=True),
    "cmaes": cmaes,
    "scipy DE": scipy_de,
    "nevergrad NGOpt": nevergrad,
}


def run(key: Key) -> Line:
    """Run once and return the result line."""
    import cocoex

    suite, dimension, budget, restarts, name, function, instance = key
    problems = cocoex.Suite(suite, f"instances: {instance}", f"dimensions: {dimension}")
    problem = problems.get_problem_by_function_dimension_instance(function, dimension, instance)
    starts = np.random.default_rng([function, dimension, instance])
    task = Task(problem, bbob.optimum(problem), budget * dimension, restarts, instance, starts)
    reason = ""
    with contextlib.suppress(Ended):
        reason = PEERS.get(name, ours(name))(task)
    found = {"reached": task.reached, "evaluations": task.evaluations, "stop": reason}
    return dict(zip(KEYS, key, strict=True)) | found


def key_of(line: Line) -> Key:
    return tuple(line[name] for name in KEYS)


def place_of(line: Line) -> Key:
    return line["suite"], line["dimension"], line["restarts"]


def without_budget(key: Key) -> Key:
    return tuple(value for name, value in zip(KEYS, key, strict=True) if name != "budget")


def by_start(lines: list[Line]) -> dict[Key, list[Line]]:
    """Return the runs with the same start and different budgets."""
    found: dict[Key, list[Line]] = {}
    for line in lines:
        found.setdefault(without_budget(key_of(line)), []).append(line)
    return found


def derived(key: Key, known: dict[Key, list[Line]]) -> Line | None:
    """Return the result that a run with this or another budget implies, or None.

    Only nevergrad takes the budget as an argument. For the others, a run with a larger budget begins in the
    same way, and one that ended before a smaller budget would end there again.
    """
    name, budget = key[KEYS.index("name")], key[KEYS.index("budget")]
    for line in known.get(without_budget(key), []):
        evaluations, most = min(line["evaluations"], budget * line["dimension"]), line["budget"]
        ended = line["evaluations"] < most * line["dimension"] or len(line["reached"]) == len(TARGETS)
        if most == budget or (name != "nevergrad NGOpt" and (most > budget or ended)):
            reached = [count for count in line["reached"] if count <= evaluations]
            stop = line["stop"] if evaluations == line["evaluations"] else ""
            own = dict(zip(KEYS, key, strict=True))
            return own | {"reached": reached, "evaluations": evaluations, "stop": stop}
    return None


def _cma_es_first(run: Key) -> Key:
    return run[0] != "cma-es", run[0] in PEERS, *run


def at_budgets(lines: list[Line]) -> dict[Key, dict[str, list[Line]]]:
    """Return results by setting, then by name: cma-es, our other strategies, other packages.

    Instances without results of all functions are omitted: the solved runs among them would count too much.
    """
    known = by_start(lines)
    functions: dict[Key, set[int]] = {}
    most: dict[Key, int] = {}
    for line in lines:
        place = place_of(line)
        functions.setdefault(place, set()).add(line["function"])
        most[place] = max(most.get(place, 0), line["budget"])
    found: dict[Key, dict[str, list[Line]]] = {}
    runs = {(line["name"], *place_of(line), line["instance"]) for line in lines}
    for name, suite, dimension, restarts, instance in sorted(runs, key=_cma_es_first):
        place = suite, dimension, restarts
        for budget in (budget for budget in BUDGETS if budget <= most[place]):
            setting = suite, dimension, budget, restarts
            keys = [(*setting, name, function, instance) for function in functions[place]]
            results = [result for key in keys if (result := derived(key, known))]
            if len(results) == len(keys):
                found.setdefault(setting, {}).setdefault(name, []).extend(results)
    return found


# --- tables -------------------------------------------------------------------------------------------


def at_the_end(line: Line) -> float:
    """Return the share of targets reached."""
    return len(line["reached"]) / len(TARGETS)


def over_time(line: Line) -> float:
    """Return the mean share over the logarithm of evaluations, from one per dimension to the budget."""
    first, last = np.log(line["dimension"]), np.log(line["dimension"] * line["budget"])
    left = last - np.log(np.clip(line["reached"], line["dimension"], None))
    return float(left.sum() / len(TARGETS) / (last - first))


def paired(one: list[Line], other: list[Line], measure: Callable[[Line], float]) -> tuple[float, float, int]:
    """Return the mean difference on shared problems, its standard error, and the number of problems."""
    a, b = ({(line["function"], line["instance"]): measure(line) for line in lines} for lines in (one, other))
    gaps = np.array([a[place] - b[place] for place in sorted(a.keys() & b.keys())])
    if len(gaps) < 2:
        return float("nan"), float("nan"), len(gaps)
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))), len(gaps)


def summary(results: dict[Key, dict[str, list[Line]]]) -> str:
    """Return the differences to the first name at the end of each setting."""
    names = [name for name in PEERS if any(name in by_name for by_name in results.values())]
    rows = []
    for (suite, dimension, budget, restarts), by_name in sorted(results.items()):
        first = next(iter(by_name))
        cells = [suite, str(dimension), f"{budget:,}", restarts, f"{_share(by_name[first]):.3f}"]
        for name in names:
            gap, error, count = paired(by_name[first], by_name.get(name, []), at_the_end)
            cells.append(f"{gap:+.3f} ± {error:.3f} ({count})" if count else "")
        rows.append(cells)
    header = ["suite", "n", "evaluations / n", "restarts", "cma-es", *(f"less {name}" for name in names)]
    return presets.markdown(header, rows)


def _share(lines: list[Line]) -> float:
    return float(np.mean([at_the_end(line) for line in lines]))


def tables(lines: list[Line]) -> Iterator[str]:
    """Return a summary, and the results of each setting by group of functions with paired differences."""
    results = at_budgets(lines)
    yield summary(results) + "\n"
    for (suite, dimension, budget, restarts), by_name in sorted(results.items()):
        yield f"### {suite}, {dimension}-D, {budget:,} evaluations a dimension, restarts: {restarts}\n"
        first = next(iter(by_name))
        rows = []
        for name, runs in by_name.items():
            cells = [name, f"{_share(runs):.3f}"]
            for group in GROUPS.values():
                own = [line for line in runs if line["function"] in group]
                cells.append(f"{_share(own):.3f}" if own else "")
            solved = sum(len(line["reached"]) == len(TARGETS) for line in runs)
            cells += [f"{np.mean([over_time(line) for line in runs]):.3f}", f"{solved} of {len(runs)}"]
            for measure in (at_the_end, over_time):
                gap, error, _ = paired(by_name[first], runs, measure)
                cells.append("" if name == first else f"{gap:+.3f} ± {error:.3f}")
            rows.append(cells)
        less = f"{first} less it"
        header = ["", "at the end", *GROUPS, "over time", "solved", less, f"{less}, over time"]
        yield presets.markdown(header, rows) + "\n"


def picture(lines: list[Line]) -> None:
    """Draw the share of all targets against evaluations for the settings in :data:`DRAWN`."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(DRAWN), figsize=(4.5 * len(DRAWN), 3.6), sharey=True)
    results = at_budgets(lines)
    for ax, setting in zip(axes, DRAWN, strict=True):
        suite, dimension, budget, restarts = setting
        for name, runs in results[setting].items():
            hits = np.sort(np.concatenate([line["reached"] for line in runs])) / dimension
            share = np.arange(1, len(hits) + 1) / (len(TARGETS) * len(runs))
            ax.step([*hits, budget], [*share, share[-1]], where="post", label=name, linewidth=1.2)
        ax.set(xscale="log", xlim=(1, budget), ylim=(0, 1), title=f"{suite}, {dimension}-D, {restarts}")
        ax.set_xlabel("evaluations / dimension")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("share of targets")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


# --- commands -----------------------------------------------------------------------------------------


def spans(text: str) -> list[int]:
    """Parse a list of ranges such as ``1-5,8``."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "picture"])
    parser.add_argument("suite", nargs="?", default="bbob", choices=["bbob", "bbob-mixint"])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 3, 5, 10, 20])
    parser.add_argument("--per-dimension", type=int, default=2000, help="evaluations a dimension")
    parser.add_argument("--restarts", nargs="+", default=["none"], choices=["none", "ipop", "bipop"])
    parser.add_argument("--functions", type=spans, default=spans("1-24"))
    parser.add_argument("--instances", type=spans, default=spans("1-15"))
    parser.add_argument(
        "--names", nargs="+", default=["cma-es", "pycma", "cmaes"], help="ours, or " + ", ".join(PEERS)
    )
    parser.add_argument("--minutes", type=float, default=np.inf, help="processor time after which to stop")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    known = presets.lines_of(chosen.results) if chosen.results.exists() else []
    if chosen.what == "table":
        print("\n".join(tables(known)))
        return
    if chosen.what == "picture":
        picture(known)
        return
    warnings.simplefilter("ignore")
    there = by_start(known)
    for instance, restarts, dimension, function, name in itertools.product(
        chosen.instances, chosen.restarts, chosen.dimensions, chosen.functions, chosen.names
    ):
        key = (chosen.suite, dimension, chosen.per_dimension, restarts, name, function, instance)
        if derived(key, there) or (name, restarts) == ("cmaes", "bipop"):  # its package has no loop for bipop
            continue
        if time.process_time() > 60 * chosen.minutes:
            break
        with chosen.results.open("a", encoding="utf-8") as out:
            out.write(json.dumps(run(key), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
