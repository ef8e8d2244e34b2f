"""Every test runs in an empty folder, so that no files are left in the repository."""

import gc
import importlib.util
import os
import signal
from pathlib import Path

import pytest
from tests.museum import Museum
from tests.touched import concerns, touched

from escalade.engines.fork_server import warm_up
from escalade.envs.process import headless

# Tests that share slow fixtures or imports run in one process: the name of their group by file.
TOGETHER = {
    "tests/wings/cluster/test_ray_cluster.py": "ray",
    "tests/wings/cluster/test_ray_faults.py": "ray-faults",
    "tests/wings/many_runs/test_sweep_command.py": "sweep",
    "tests/wings/analysis/test_report_page.py": "report",
    "tests/wings/publish/test_export.py": "export",
    "tests/test_house.py": "house",
    "tests/test_qd.py": "qd",
    "tests/policies/test_transformers.py": "transformers",
}

# Tests whose runs draw learning curves. That takes half the time of a short run; other tests ignore them.
DRAWN = ("tests/wings/analysis/test_pictures.py",)

# Modules preloaded for the workers of tests: torch, rollouts, and the backends.
SERVED = [
    "escalade.fitness.work",
    "escalade.wings.optimize.calls",
    "escalade.policies.population.torch_network",
    "escalade.rollout.rollouts",
    "escalade.envs.gymnasium_backend",
    "escalade.envs.envpool.backend",
    "escalade.envs.envpool.preload",
    "escalade.envs.mujoco.backend",
    "escalade.envs.mujoco.preload",
]

# Signals that tests send to commands.
FOR_COMMANDS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

_NICE = 5

# Must come before test modules import envpool and mujoco; later, EnvPool's rendering would end the process.
headless()

# Imports and collected tests live until the end: collect rarely during collection, and skip them afterwards.
_PYTHONS = gc.get_threshold()
gc.set_threshold(100_000)

# Commands started by tests share compiled bytecode, regardless of the environment.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_xdist_make_scheduler(config, log):
    """Distribute tests one by one, except groups, the largest group first.

    This replaces xdist's ``loadgroup``, which finds no groups since pytest 9.2, because pytest ignores the
    ids that it changes.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return TOGETHER.get(nodeid.partition("::")[0], nodeid)

    return Grouped(config, log)


def pytest_runtest_setup(item):
    """Give clusters priority: their tests are the longest chain, and wait for many short-lived processes.

    Every test process lowers its priority at its first test of a different kind.
    """
    clusters = TOGETHER.get(item.nodeid.partition("::")[0], "").startswith("ray")
    if hasattr(os, "nice") and not clusters and os.nice(0) < _NICE:
        os.nice(_NICE - os.nice(0))


def pytest_addoption(parser):
    parser.addoption(
        "--touched", action="store_true", help="of the slow tests, only those that cover changed files"
    )


def pytest_collection_modifyitems(config, items):
    """Start with the tests of whole runs, which wait for processes most: at the end they would wait alone.

    Skip tests with EnvPool in their name or parameters if EnvPool is not installed. It has builds for Linux
    only.

    With ``--touched``, deselect slow tests that cover no changed file.
    """
    root = config.rootpath
    if config.getoption("touched") and (paths := touched(root)) is not None:
        config.hook.pytest_deselected(items=[item for item in items if not concerns(item, root, paths)])
        items[:] = [item for item in items if concerns(item, root, paths)]
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.parent != here)  # files directly in this folder first
    if importlib.util.find_spec("envpool") is None:
        for item in items:
            if "envpool" in item.name:
                item.add_marker(pytest.mark.skip(reason="EnvPool is not installed"))


def pytest_collection_finish(session):
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_PYTHONS)


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory):
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(before)


@pytest.fixture(scope="session", autouse=True)
def _signals():
    """Commands started by a test receive every signal, even if this process was started to ignore some.

    ``nohup`` and background shells make a process ignore signals. Children inherit ignored signals, but not
    handlers.
    """
    ignored = [number for number in FOR_COMMANDS if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def _server(_signals):
    """Preload the fork server with all modules that workers need, whichever test starts workers first.

    It imports only the modules requested by its first run. Without this, each worker of the other tests would
    spend a second or more on importing torch or EnvPool.
    """
    if os.environ.get("PYTEST_XDIST_WORKER"):
        warm_up(SERVED, {"ESCALADE_PRELOADED_ENVIRONMENT": "CartPole-v1"})


@pytest.fixture(scope="session")
def museum(tmp_path_factory):
    """Runs that all test processes share: see :class:`tests.museum.Museum`."""
    place = tmp_path_factory.getbasetemp()
    made = Museum((place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "museum")
    yield made
    made.check()


@pytest.fixture(scope="module", autouse=True)
def _curves(request):
    """Replace learning curves with empty files, except in the modules of ``DRAWN``."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.nodeid.startswith(DRAWN):
            patch.setattr("escalade.training.run.plot_run", _no_curve)
        yield


def _no_curve(run, output, target=None, title="", *, x="steps", smooth=1, cut=False):
    Path(output).touch()
