"""CONTRIBUTING and the index of the benchmarks agree with the repository.

The worked example of a new strategy is in tests/strategies.
"""

import importlib
import json
import re
import sys
import tomllib
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import escalade.engines
import escalade.envs
import escalade.perturbation
import escalade.policies
import escalade.recorders
import escalade.training
from escalade.cli import main as cli
from escalade.config.options import Config
from escalade.engines.registry import ENGINES, start_engine
from escalade.envs import resolve, settle_backend, vectorize
from escalade.envs.backends import BACKENDS, BackendEntry
from escalade.envs.pixels.frames import Frames
from escalade.perturbation import DensePopulation, slices
from escalade.policies.networks import batched_network, from_vector
from escalade.policies.population.recognition import LAYERS, Kind
from escalade.policies.population.stack import Stack
from escalade.recorders import Goals
from escalade.recorders.registry import RECORDERS, RunInfo, start_recorder
from escalade.storage.run_folder import RunFolder
from escalade.strategies import OpenAIES
from escalade.support.registry import Entry
from escalade.training.score import SCORES

ROOT = Path(__file__).parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def rows(text, first):
    """Return the cells of the table whose first column is named ``first``."""
    table = text.partition(f"| {first} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_table_of_rooms_matches_the_enforced_order():
    with (ROOT / "pyproject.toml").open("rb") as file:
        contract, _ = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    named = [re.findall(r"`(\w+)`", room) for room, _ in rows(CONTRIBUTING, "room")]
    assert named == [layer.split(" | ") for layer in contract["layers"]]


def test_the_index_of_the_benchmarks_names_every_script_and_page():
    folder = ROOT / "benchmarks"
    text = (folder / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    there = {path.name for path in folder.iterdir() if path.is_file()} - {"README.md"}
    assert {link for link in links if "/" not in link} == there
    assert {f"results/{path.name}" for path in (folder / "results").iterdir()} <= set(links)
    assert all((folder / link.partition("#")[0]).exists() for link in links)
    scripts = {path.name for path in folder.glob("*.py")} | {"peers/compare.py"}
    found = {re.match(r"\[(.*?)\]", row[0])[1]: row[2] for row in rows(text, "script")}
    assert list(found) == sorted(scripts)
    assert all(command.startswith(f"`{script}") for script, command in found.items())


def test_the_walks_lead_to_the_named_code():
    walks = CONTRIBUTING.partition("### Two walks")[2].partition("## ")[0]
    stations = re.findall(r"`(\w+/\w+\.py)`[,:] `([\w.]+)`", walks)
    assert len(stations) == 7
    for file, path in stations:
        found = importlib.import_module(f"escalade.{file.removesuffix('.py').replace('/', '.')}")
        for name in path.split("."):
            found = getattr(found, name)
        assert callable(found)


def test_the_modules_from_the_command_to_the_gradient_are_listed(monkeypatch, tmp_path):
    listed = CONTRIBUTING.partition("are in 10 modules: ")[2].partition(".\n")[0]
    calls, plain = [], slices.TableSlices.weighted_sum

    def noise_sum(*arguments):
        calls.append([frame.f_globals["__name__"] for frame, _ in traceback.walk_stack(sys._getframe(1))])
        return plain(*arguments)

    monkeypatch.setattr(slices.TableSlices, "weighted_sum", noise_sum)
    train = ["train", "CartPole-v1", "--preset", "none", "--strategy", "ars", "--workers", "0"]
    train += ["--population", "4", "--hidden", "4", "--generations", "1", "--max-episode-steps", "50"]
    assert cli.main([*train, "--run-dir", str(tmp_path / "run")]) == 0
    called = dict.fromkeys(name for name in reversed(calls[0]) if name.startswith("escalade."))
    modules = [name.removeprefix("escalade.") for name in called]
    # This test replaces the first and the last module.
    assert re.findall(r"`([\w.]+)`", listed) == ["__main__", *modules, "perturbation.slices"]
    assert len(modules) == 8


def test_the_named_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", CONTRIBUTING.replace("GNU make 3", "")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.fixture
def follow(monkeypatch, tmp_path):
    """Write the file of a page's example. Return the rest of its code."""
    before = set(sys.modules)

    def written(part, package):
        text = (ROOT / f"docs/extending/{part}.md").read_text()
        file, *use = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        room, name = re.search(r"`(\w+)/(\w+\.py)`", text).groups()
        assert package.__name__ == f"escalade.{room}"
        (tmp_path / name).write_text(file)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        monkeypatch.chdir(tmp_path)
        return "".join(use)

    yield written
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name.rpartition('.')[2]}.py"):
            del sys.modules[name]


def test_the_guide_to_a_new_recorder_works(follow, monkeypatch, tmp_path):
    use = follow("recorder", escalade.recorders)
    monkeypatch.setitem(RECORDERS, "json-lines", None)  # removed again at the end
    exec(use, {"RECORDERS": RECORDERS, "Entry": Entry})
    recorder = start_recorder("json-lines", RunInfo(RunFolder(tmp_path), Goals("a run")))
    options = {"preset": None, "population": 4, "hidden": [4], "generations": 3, "eval_episodes": 2}
    escalade.train("CartPole-v1", workers=0, verbose=False, recorders=[recorder], **options)
    written = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    rows = [row for row in written if "note" not in row]
    assert [row["generation"] for row in rows] == [1, 2, 3]
    assert {"episodes", "env_steps", "return_mean"} <= rows[0].keys()


def test_the_guide_to_a_new_noise_source_works(follow):
    follow("noise-source", escalade.perturbation)
    source = importlib.import_module("escalade.perturbation.signs").Signs()
    draws = source.draw(7, 3, 5, 300)
    noise = np.zeros((5, 300), np.float32)
    for number, row in enumerate(noise):
        draws.write(number, 1.0, row)
    assert set(noise.ravel().tolist()) == {-1.0, 1.0}
    assert abs(noise.mean()) < 0.1
    weights, shift = np.array([0.5, 0.0, -2.0, 1.0, 3.0]), np.full(300, 0.25, np.float32)
    np.testing.assert_allclose(draws.weighted_sum(weights), weights @ noise, atol=1e-6)
    squares = draws.weighted_square_sum(weights, shift)
    np.testing.assert_allclose(squares, weights @ (noise - shift) ** 2, atol=1e-5)
    search = OpenAIES(np.zeros(4), population=40, sigma=0.1, lr=0.1, perturbation=source)
    for _ in range(60):
        search.tell(-(search.ask() - 1.0).square().sum(dim=1))
    np.testing.assert_allclose(search.center, np.ones(4), atol=0.1)


def test_the_guide_to_a_new_policy_layer_works(follow, monkeypatch):
    use = follow("policy-layer", escalade.policies)
    made = importlib.import_module("escalade.policies.layer_norm")
    monkeypatch.setitem(LAYERS, nn.LayerNorm, None)  # removed again at the end
    exec(use, {"LAYERS": LAYERS, "Kind": Kind, "nn": nn, **vars(made)})
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2))
    network = batched_network(module)
    assert isinstance(network, Stack)
    vectors = np.random.default_rng(1).normal(size=(5, network.dimension)).astype(np.float32)
    seen = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    forward, alone = network.forward(5), network.forward(1)
    for row in range(5):
        forward.load(row, DensePopulation(vectors), row)
    found = forward(seen).copy()
    for row, outputs in enumerate(found):
        from_vector(module, vectors[row])
        expected = module(torch.from_numpy(seen[row : row + 1])).detach().numpy()
        np.testing.assert_allclose(outputs[None], expected, rtol=1e-4, atol=1e-5)
        alone.load(0, DensePopulation(vectors), row)
        np.testing.assert_array_equal(alone(seen[row : row + 1])[0], outputs)


def test_the_guide_to_a_new_score_works(follow, monkeypatch, tmp_path):
    use = follow("score", escalade.training)
    made = importlib.import_module("escalade.training.surprise").Surprise
    monkeypatch.setitem(SCORES, "surprise", None)  # removed again at the end
    exec(use, {"SCORES": SCORES, "Surprise": made})
    options = {"preset": None, "population": 4, "hidden": [4], "eval_episodes": 2, "eval_every": 1}
    options |= {"workers": 0, "verbose": False, "seed": 3}

    def digest(name, *generations):
        run = escalade.train("CartPole-v1", run_dir=tmp_path / name, generations=generations[0], **options)
        for more in generations[1:]:
            run = escalade.resume(run, generations=more, verbose=False)
        return run.summary["params_sha256"]

    monkeypatch.setattr(Config, "surprise", 0.0, raising=False)  # the option
    plain = digest("plain", 4)
    monkeypatch.setattr(Config, "surprise", 5.0)
    whole = digest("whole", 4)
    assert whole != plain
    assert digest("parts", 2, 4) == whole


class Counts:
    """Work whose results depend on earlier items if ``remembers``."""

    def __init__(self, remembers):
        self.remembers, self.jobs = remembers, 0

    def info(self):
        return {"slots": 1}

    def begin(self, job):
        self.job = job + self.remembers * self.jobs
        self.jobs += 1

    def run(self, feed):
        while items := feed.take(1, wait=True):
            feed.put(items[0], self.job + items[0])

    def close(self):
        pass


def test_the_guide_to_a_new_engine_works(follow, monkeypatch):
    use = follow("engine", escalade.engines)
    monkeypatch.setitem(ENGINES, "twice", None)  # removed again at the end
    exec(use, {"ENGINES": ENGINES, "Entry": Entry})
    engine = start_engine("twice", lambda: Counts(remembers=False), 1)
    assert engine.run(10, 3).in_order() == [10, 11, 12]
    forgetful = start_engine("twice", lambda: Counts(remembers=True), 1)
    with pytest.raises(escalade.errors.EngineFailure, match="run again"):
        forgetful.run(10, 3)
    options = {"preset": None, "population": 4, "hidden": [4], "generations": 2, "eval_episodes": 2}
    runs = [
        escalade.train("CartPole-v1", engine=engine, workers=1, verbose=False, **options)
        for engine in ("twice", "local")
    ]
    assert len({run.summary["params_sha256"] for run in runs}) == 1


def test_the_guide_to_a_new_backend_works(follow, monkeypatch):
    use = follow("backend", escalade.envs)
    monkeypatch.setitem(BACKENDS, "mountain-car", None)  # removed again at the end
    exec(use, {"BACKENDS": BACKENDS, "BackendEntry": BackendEntry})
    ours, theirs = (
        vectorize(settle_backend(resolve("MountainCar-v0", backend=name)), 3)
        for name in ("mountain-car", "gymnasium")
    )
    assert type(ours).__name__ == "MountainCars"
    everyone, seeds = np.arange(3), np.array([5, 6, 7])
    seen = theirs.reset(everyone, seeds)
    np.testing.assert_array_equal(ours.reset(everyone, seeds), seen)
    ends = np.zeros(3, bool)
    while not ends.any():
        # One with the swing, one idle, one to the right.
        actions = np.where(seen[:, 1] >= 0, [2, 1, 2], [0, 1, 2])
        ours_seen, ours_rewards, ours_ends = ours.step(everyone, actions)
        seen, rewards, ends = theirs.step(everyone, actions)
        np.testing.assert_allclose(ours_seen, seen, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(ours_rewards, rewards)
        np.testing.assert_array_equal(ours_ends, ends)
    assert ends.tolist() == [True, False, False], "a car that goes with its swing arrives first"
    ours.reset(np.array([1]), np.array([9]))
    np.testing.assert_array_equal(ours.step(np.array([1]), np.array([1]))[0].shape, (1, 2))
    with pytest.raises(escalade.InputError, match="has no CartPole-v1"):
        settle_backend(resolve("CartPole-v1", backend="mountain-car"))
    with pytest.raises(escalade.InputError, match="has no MountainCar-v0 with these"):
        settle_backend(resolve("MountainCar-v0", backend="mountain-car", frames=Frames(frame_skip=2)))
    with pytest.raises(escalade.InputError, match="has no MountainCar-v0 with these"):
        settle_backend(resolve("MountainCar-v0", backend="mountain-car", early_end=20))
