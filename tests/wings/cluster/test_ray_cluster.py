"""The Ray engine on a real cluster of several nodes, all on this machine."""

import csv
import os
import re
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from tests.commands import ROOT, command, final_digest, hiding, wait_until
from tests.engines.test_processes import Squares

from escalade import InputError, train
from escalade.engines import start_engine
from escalade.recorders import read_progress

VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(ROOT)}
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow("src/escalade/engines", "src/escalade/wings/cluster", "tests/wings/cluster", "cluster"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # from Ray's own processes
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Nodes:
    """A cluster whose head node has no worker slots, so that the node of every worker can be removed."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
        self.address = self.cluster.address
        self.nodes = []

    def grow(self, number, **arguments):
        while len(self.nodes) < number:
            self.nodes.append(self.cluster.add_node(wait=False, **(NODE | arguments)))
        self.cluster.wait_for_nodes()

    def take(self, node):
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        made = Nodes()
        made.grow(1)
        ray.init(address=made.address, namespace="escalade", log_to_driver=False, logging_level="error")
        yield made
        ray.shutdown()
        made.cluster.shutdown()


@pytest.fixture
def engine(nodes):
    nodes.grow(2)
    made = start_engine("ray", Squares, 2, elastic=True)
    yield made
    made.close()


# benchmarks/ray_bits.py tests all twelve.
RUNS = [("CartPole-v1", "gymnasium", 1), ("HalfCheetah-v5", "envpool", 3)]


@pytest.mark.parametrize(("env", "backend", "count"), RUNS)
def test_results_on_one_and_three_nodes_are_identical_to_local_ones(env, backend, count, nodes, tmp_path):
    nodes.grow(count)
    options = {"preset": None, "seed": 5, "population": 12, "generations": 2, "max_episode_steps": 40}
    options |= {"eval_episodes": 3, "hidden": (8,), "backend": backend, "verbose": False}
    if backend == "envpool":
        options |= {"info_keys": "x_position", "behavior": "info:x_position:every=20", "novelty": "nsr:k=2"}
    train(env, engine="local", workers=0, run_dir=str(tmp_path / "here"), **options)
    train(env, engine="ray", workers=count, run_dir=str(tmp_path / "there"), **options)
    assert final_digest(tmp_path / "there") == final_digest(tmp_path / "here")
    columns = [read_progress(tmp_path / run / "progress.csv") for run in ("here", "there")]
    assert columns[0].get("x_position_mean") == columns[1].get("x_position_mean")
    with (tmp_path / "there" / "workers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[-1]["generation"] == "2"
    assert sum(float(row["env_steps_per_second"]) for row in rows) > 0
    assert all(0 <= float(row["idle_share"]) <= 1 for row in rows)


def values(results):
    return [result[0] for result in results]


def test_every_node_works_and_a_dead_actor_is_replaced(engine, tmp_path):
    engine.run(("fine", None), 4)
    wait_until(lambda: engine.run(("fine", None), 4) and all(w.info for w in engine._workers.values()))
    before = {result[1] for result in engine.run(("fine", None), 60).in_order()}
    assert len(before) >= 2
    results = engine.run(("die once", 11, str(tmp_path / "died")), 60).in_order()
    assert values(results) == [item**2 for item in range(60)]
    assert (tmp_path / "died").exists()
    parts = engine._report.nodes.values()
    assert sum(part.repeated_chunks for part in parts) >= 1
    assert sum(part.items for part in parts) >= 60


class OfPackage:
    """Work of a package that is installed on this machine but not on the cluster."""

    def __reduce__(self):
        return __import__, ("package_of_one_machine",)

    def __call__(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("work", "ours", "message"),
    [
        (OfPackage(), None, r"node [\d.]+ cannot import package_of_one_machine .* on every node"),
        (Squares, {"torch": "1.0"}, r"node [\d.]+ has torch \S+ \(here 1.0\); install the same"),
    ],
    ids=["package", "version"],
)
def test_a_node_with_a_missing_package_or_a_different_version_is_named(
    work, ours, message, nodes, monkeypatch
):
    if ours:
        monkeypatch.setattr("escalade.wings.cluster.ray.cluster.all_versions", lambda: ours)
    made = start_engine("ray", work, 1)
    try:
        with pytest.raises(InputError, match=message):
            made.run(("fine", None), 3)
    finally:
        made.close()


def test_a_run_waits_for_free_resources(nodes):
    made = start_engine("ray", Squares, 1, worker_resources={"slot": 1})
    notes = []
    made.on_note = notes.append
    found = []
    running = threading.Thread(target=lambda: found.extend(made.run(("fine", None), 9).in_order()))
    running.start()
    try:
        wait_until(lambda: notes)
        nodes.grow(len(nodes.nodes) + 1, resources={"slot": 1})
        running.join(180)
    finally:
        made.close()
    assert values(found) == [item**2 for item in range(9)]
    assert any(re.search(r"no node has room for a worker .* the run continues", note) for note in notes)


def test_processes_of_an_actor_share_its_work(nodes, tmp_path):
    nodes.grow(len(nodes.nodes) + 1, num_cpus=2, resources={"wide": 2})
    made = start_engine("ray", Squares, 1, worker_resources={"CPU": 2, "wide": 1})
    try:
        assert made.info["slots"] == 8
        results = made.run(("meet", None, tmp_path / "met", 2), 40).in_order()
        assert values(results) == [item**2 for item in range(40)]
        assert len({result[1] for result in results}) == 2
    finally:
        made.close()


def test_a_process_that_hangs_is_replaced(nodes, tmp_path):
    made = start_engine("ray", Squares, 1, step_timeout=2.0)
    try:
        results = made.run(("hang once", 5, str(tmp_path / "hung")), 12).in_order()
    finally:
        made.close()
    assert values(results) == [item**2 for item in range(12)]
    assert (tmp_path / "hung").exists()


class TableOf:
    """Work that returns the location of the noise table in Ray's object store, and its process."""

    def __init__(self, table):
        self.table = table

    def __call__(self):
        return self

    def info(self):
        return {"slots": 1}

    def begin(self, job):
        pass

    def run(self, feed):
        while items := feed.take(1, wait=True):
            feed.put(items[0], [*self.place(), os.getpid(), float(self.table.values[:1000].sum())])
            time.sleep(0.05)

    def place(self):
        """Return whether the array is in shared memory, and the inode of that memory."""
        address = self.table.values.__array_interface__["data"][0]
        for line in open("/proc/self/maps"):  # noqa: SIM115 - to its end, of no length known before
            span, _, _, _, inode, *path = line.split()
            first, last = (int(end, 16) for end in span.split("-"))
            if first <= address < last:
                return " ".join(path), inode
        raise AssertionError

    def close(self):
        pass


def test_workers_on_a_node_share_one_noise_table_in_its_object_store(nodes):
    from escalade.perturbation import NoiseTable

    nodes.grow(len(nodes.nodes) + 1, num_cpus=2, resources={"two": 2})
    table = NoiseTable(77, 2**22)
    made = start_engine("ray", TableOf(table), 2, worker_resources={"two": 1})
    try:
        wait_until(lambda: len({result[2] for result in made.run("job", 20).in_order()}) == 2)
        results = made.run("job", 20).in_order()
    finally:
        made.close()
    (path,) = {result[0] for result in results}  # the same memory
    assert "plasma" in path
    assert len({result[1] for result in results}) == 1
    assert {result[3] for result in results} == {float(table.values[:1000].sum())}


def test_a_missing_ray_is_reported_with_its_install_command(tmp_path):
    result = command(
        "train", "CartPole-v1", "--engine", "ray", cwd=tmp_path, variables=hiding(tmp_path / "hide", "ray")
    )
    assert result.returncode == 2
    message = "escalade: --engine: a Ray cluster needs ray; install the extra 'ray' of escalade"
    assert result.stderr == f"{message} (in a checkout: pip install '.[ray]')\n"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:9", "cluster address 127.0.0.1:9 cannot be reached (Connection refused)"),
        ("ray://127.0.0.1:10001", "must be auto or HOST:PORT of the head node"),
    ],
)
def test_an_address_without_a_cluster_is_reported_in_one_line(address, words, tmp_path):
    variables = VARIABLES | {"RAY_ADDRESS": address}
    result = command("train", "CartPole-v1", "--engine", "ray", cwd=tmp_path, variables=variables)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


OTHER_PYTHON = """
    import ray._private.utils as utils
    from escalade.engines import start_engine
    utils.compute_version_info = lambda: ("2.1.0", "3.9.1")
    start_engine("ray", object, 1)
"""


def test_a_cluster_with_different_versions_is_reported_in_one_line(nodes, tmp_path):
    script = textwrap.dedent(OTHER_PYTHON)
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "RAY_ADDRESS": nodes.address},
        capture_output=True,
        text=True,
        check=False,
    )
    last = result.stderr.strip().splitlines()[-1]
    words = (
        r"InputError: .* cannot be joined: Version mismatch.* Ray: \S+ Python: .* Ray: 2.1.0 Python: 3.9.1"
    )
    assert re.search(words, last), result.stderr


SMALL = {"preset": None, "seed": 5, "population": 12, "max_episode_steps": 40, "hidden": (8,)}
SMALL |= {"eval_episodes": 3, "backend": "gymnasium"}


def test_a_detached_run_outlives_its_driver_and_resumes_from_storage(nodes, tmp_path):
    from escalade.config.options import Config
    from escalade.wings.cluster.detached import attach, start_detached

    nodes.grow(2)
    options = {key: value for key, value in SMALL.items() if key != "preset"} | {"env": "CartPole-v1"}
    options |= {"engine": "ray", "workers": 1}
    options |= {"generations": 90, "snapshot_every": 10}
    name = start_detached(Config(**options, run_dir="first run"), str(tmp_path / "far"))
    assert name == "first-run"
    far = tmp_path / "far" / name
    wait_until(lambda: len(list(far.glob("checkpoints/*"))) >= 2)
    driver = ray.get_actor(f"escalade-run-{name}", namespace="escalade")
    before, _, _ = ray.get(driver.follow.remote("", 0))
    ray.kill(driver, no_restart=False)
    lines = []
    summary = attach(name, lines.append, nodes.address)
    assert summary["stop_reason"] == "generations"
    assert any(line.startswith("resuming ") for line in lines), (before, lines)
    train("CartPole-v1", engine="local", workers=0, generations=90, run_dir=str(tmp_path / "here"),
          verbose=False, **SMALL)  # fmt: skip
    assert summary["params_sha256"] == final_digest(tmp_path / "here") == final_digest(far)
    with pytest.raises(InputError, match="the cluster has no run called first-run"):
        attach(name, lines.append, nodes.address)


def test_a_stopped_detached_run_is_saved(nodes, tmp_path):
    from escalade.config.options import Config
    from escalade.wings.cluster.detached import attach, start_detached

    options = {key: value for key, value in SMALL.items() if key != "preset"} | {"env": "CartPole-v1"}
    config = Config(**options, engine="ray", workers=1, run_dir="endless")
    name = start_detached(config, str(tmp_path))
    with pytest.raises(InputError, match="the cluster already has a run called endless"):
        start_detached(config, str(tmp_path))
    summary = attach("endless", lambda line: None, nodes.address, stop=True)
    assert summary["stop_reason"] == "stopped"
    assert summary["params_sha256"] == final_digest(tmp_path / name)
    assert list((tmp_path / name / "checkpoints").glob("*.safetensors"))
