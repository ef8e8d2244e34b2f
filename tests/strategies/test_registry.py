"""The registry describes each strategy correctly, and a new strategy needs only an entry."""

import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.devices import PLACE

import escalade
from escalade import strategies
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.perturbation import NoiseTable
from escalade.perturbation.device import Counters, DeviceNoise
from escalade.perturbation.fresh import FreshDraws
from escalade.perturbation.registry import make_source
from escalade.strategies.base import Strategy
from escalade.strategies.registry import STRATEGIES, STRATEGY_OPTIONS, StrategyEntry
from escalade.training.parts import make_strategy

ROOT = Path(__file__).parent.parent.parent
TABLE = NoiseTable(1, 4096)
every = pytest.mark.parametrize("entry", STRATEGIES.values(), ids=STRATEGIES.keys())


@every
def test_entry_matches_its_class(entry):
    kind = entry.load()
    assert issubclass(kind, Strategy)
    assert getattr(strategies, entry.class_name) is kind
    assert entry.options <= inspect.signature(kind).parameters.keys()
    assert kind.grows == entry.grows
    author = re.search(r"[A-Z]\w+", entry.paper).group()
    assert author in sys.modules[kind.__module__].__doc__


@every
def test_every_argument_is_explicit_and_documented(entry):
    kind = entry.load()
    parameters = inspect.signature(kind).parameters
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())
    described = re.findall(r"^ {8}(\w+): ", kind.__doc__.partition("Args:")[2], re.MULTILINE)
    shared = {"seed", "direction", "perturbation", "optimizer", "lr", "momentum", "weight_decay"}
    assert set(parameters) - shared <= set(described) - {"InputError"} <= set(parameters)


def test_package_exports_the_registered_and_base_classes():
    classes = {entry.class_name for entry in STRATEGIES.values()}
    assert set(strategies.__all__) == classes | {
        "ClipUp",
        "DensePopulation",
        "GaussianStrategy",
        "GuidedES",
        "PersistentES",
        "Result",
        "Strategy",
    }
    assert all(inspect.isclass(getattr(strategies, name)) for name in strategies.__all__)


def test_type_checkers_see_the_exported_names():
    source = (ROOT / "src/escalade/strategies/__init__.py").read_text()
    seen = set(re.findall(r"import (\w+) as \1$", source, re.MULTILINE))
    assert seen == set(strategies.__all__)


def test_registry_does_not_import_torch():
    code = "import sys, escalade.strategies.registry as r; print(len(r.STRATEGIES), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(STRATEGIES)), "False"]


def test_strategy_options_reach_the_strategy():
    assert STRATEGY_OPTIONS == ("lr",)
    own = {"top_directions": 2}
    config = Config(env="X-v0", strategy="ars", strategy_options=own, lr=0.5, population=8)
    ars = make_strategy(config, np.zeros(3, np.float32), TABLE)
    assert (ars.top_directions, ars.lr) == (2, 0.5)


@pytest.mark.parametrize(
    ("name", "argument", "hint"),
    [
        ("cma-es", "bounds", "it takes x0, population, sigma, covariance, seed, direction"),
        ("snes", "learning_rate", "CMAES|SNES takes no learning_rate"),
        ("openai-es", "optimiser", "did you mean optimizer"),
        ("cem", "elites", "did you mean elite"),
    ],
)
def test_unknown_argument_error_is_one_line_with_a_suggestion(name, argument, hint):
    with pytest.raises(InputError, match=hint) as caught:
        STRATEGIES[name].load()(np.zeros(3), 12, **{argument: 1})
    assert argument in str(caught.value)


def test_guide_to_a_new_strategy_works(monkeypatch):
    section = (ROOT / "docs/extending/strategy.md").read_text()
    file, entry = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    module = types.ModuleType("escalade.strategies.random_search")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(file, "random_search.py", "exec"), module.__dict__)
    monkeypatch.setitem(STRATEGIES, "random-search", None)  # removed again after the test
    exec(entry, {"STRATEGIES": STRATEGIES, "StrategyEntry": StrategyEntry})

    options = {"strategy": "random-search", "population": 9, "sigma": 0.5, "workers": 0}
    run = escalade.train(
        "CartPole-v1", preset=None, hidden=[4], generations=3, eval_episodes=2, verbose=False, **options
    )
    assert run.summary["strategy"] == "random-search"
    es = module.RandomSearch(np.ones(2), 20, perturbation=TABLE)
    for _ in range(30):
        es.tell(-(es.ask() ** 2).sum(dim=1))
    assert float(es.center.norm()) < 0.3


def assert_finds_a_line(search):
    """150 generations bring the center of 35 parameters closer to numbers from -1 to 1."""
    target = torch.linspace(-1, 1, 35)
    for _ in range(150):
        search.tell(-(search.ask() - target).square().sum(dim=1))
    assert float((search.center - target).square().sum()) < 0.2 * float(target.square().sum())


class OnHost:
    """The numbers of a device's noise, in arrays."""

    def __init__(self, source):
        self.source = source

    def draw(self, seed, generation, count, dimension):
        rows = self.source.draw(seed, generation, count, dimension).rows(np.arange(count))
        return FreshDraws(rows.cpu().numpy().astype(np.float64))


def tell_distances(search, generations=10):
    target = torch.linspace(-1, 1, search.dimension)
    for _ in range(generations):
        search.tell(-(search.ask() - target).square().sum(dim=1))


@every
def test_device_noise_works_as_on_the_host_or_is_rejected_in_one_line(entry):
    source = DeviceNoise(Counters(PLACE), 0, ((6, 5), (5,)))

    def search(noise=source):
        return entry.load()(np.zeros(35), 40, sigma=0.1, perturbation=noise)

    if not entry.load().on_device:
        with pytest.raises(InputError, match=rf"^{entry.class_name} does not work with device; .*$"):
            search()
        return
    found, host = search(), search(OnHost(source))
    tell_distances(found)
    tell_distances(host)
    assert {part.device.type for part in found.state_dict().values() if torch.is_tensor(part)} == {PLACE.type}
    torch.testing.assert_close(found.center.cpu().double(), host.center, rtol=1e-4, atol=1e-5)
    assert found.sigma == pytest.approx(host.sigma, rel=1e-4)
    again = search()
    again.load_state_dict(found.state_dict())
    tell_distances(found)
    tell_distances(again)
    assert torch.equal(again.ask(), found.ask())


@every
def test_low_rank_noise_works_or_is_rejected_in_one_line(entry):
    source = make_source("low-rank:1", 1, ((6, 5), (5,)))

    def search():
        return entry.load()(np.zeros(35), 40, sigma=0.1, perturbation=source)

    if not entry.load().low_rank:
        with pytest.raises(InputError, match=rf"^{entry.class_name} does not work with low-rank noise; .*$"):
            search()
        return
    assert_finds_a_line(search())
    with pytest.raises(InputError, match="the low-rank noise is for 35 parameters, but x0 has 4"):
        entry.load()(np.zeros(4), 40, perturbation=source)
