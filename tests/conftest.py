"""Every test runs in an empty folder, so that nothing is left in the repository."""

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

# Tests that share what takes long to make or to import go to one process: their group's name by file.
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

# Where runs draw their curves. It takes half of the time of a short run, and other tests do not look at them.
DRAWN = ("tests/wings/analysis/test_pictures.py",)

# What the workers of tests need: modules of torch, rollouts, and the backends.
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

# What tests send to the commands that they start.
FOR_COMMANDS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

_NICE = 5

# Before test modules import both envpool and mujoco: after that, EnvPool's drawing ends the process.
headless()

# Imports and collected tests stay: garbage is hardly looked for until then, and after that not among them.
_PYTHONS = gc.get_threshold()
gc.set_threshold(100_000)

# Commands that tests start compile the package once, not each of them anew, whatever the environment says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_xdist_make_scheduler(config, log):
    """Deal tests out one by one, but for groups, the largest group first.

    Instead of xdist's own ``loadgroup``, which finds no groups since pytest 9.2: nobody reads the ids
    that it changes.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return TOGETHER.get(nodeid.partition("::")[0], nodeid)

    return Grouped(config, log)


def pytest_runtest_setup(item):
    """Let clusters go first: their tests are the longest chain, and wait for many short-lived processes.

    Every test process is nicer than they are from its first test of another kind on.
    """
    clusters = TOGETHER.get(item.nodeid.partition("::")[0], "").startswith("ray")
    if hasattr(os, "nice") and not clusters and os.nice(0) < _NICE:
        os.nice(_NICE - os.nice(0))


def pytest_addoption(parser):
    parser.addoption(
        "--touched", action="store_true", help="of the slow tests, only those of what a change touches"
    )


def pytest_collection_modifyitems(config, items):
    """Begin with the tests of whole runs, which wait for processes most: at the end they would wait alone.

    Skip what names EnvPool, in the test's name or its parameters, where EnvPool is not installed. There are
    builds of it for Linux only.

    With ``--touched``, leave out slow tests of what was not touched.
    """
    root = config.rootpath
    if config.getoption("touched") and (paths := touched(root)) is not None:
        config.hook.pytest_deselected(items=[item for item in items if not concerns(item, root, paths)])
        items[:] = [item for item in items if concerns(item, root, paths)]
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.parent != here)  # those that stand in this folder, not below it
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
    """Commands that a test starts heed every signal, also where this process was told to ignore some.

    As ``nohup`` tells it, and a shell that starts it in the background: children inherit what is ignored,
    and not what is handled.
    """
    ignored = [number for number in FOR_COMMANDS if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def _server(_signals):
    """The server that workers are forked from has all they need, whichever test is the first to have workers.

    It imports what its first run asks for, and nothing later: each worker of the other tests would import
    torch or EnvPool itself, for a second and more.
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
    """Runs leave an empty picture, but in the modules of ``DRAWN``."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.nodeid.startswith(DRAWN):
            patch.setattr("escalade.training.run.plot_run", _no_curve)
        yield


def _no_curve(run, output, target=None, title="", *, x="steps", smooth=1, cut=False):
    Path(output).touch()
