"""The driver's side of the Ray engine, on a simulated cluster that allows every order of events."""

import threading
from queue import SimpleQueue

import numpy as np
import pytest

from escalade import EngineFailure, EnvironmentFailure, InputError
from escalade.engines import EngineOptions
from escalade.engines.results import Results
from escalade.wings.cluster.ray import actor, connection, engine, fleet
from escalade.wings.cluster.ray.actor import difference
from escalade.wings.cluster.ray.cluster import RayCluster
from escalade.wings.cluster.ray.engine import RayEngine
from escalade.wings.cluster.ray.messages import Failed, Lost, Node, Ready, Reply, UnfitNode


def results_of(items, rows):
    results = Results(len(items))
    results.put_many(items, rows)
    return results


class ListedCluster:
    """Workers are numbers. A chunk is completed when the engine next waits, unless the test overrides it."""

    def __init__(self, rooms, slots=4, refills=True):
        self.events = SimpleQueue()
        self.rooms = dict(rooms)
        self.info = {"slots": slots, "refills": refills}
        self.workers = {}  # number: node, or None while no slot is free
        self.hands = {}  # number: sent chunks
        self.started = self.puts = 0
        self.sent = []
        self.avoided = ()
        self.unfit = {}  # problem by node
        self.silent = set()  # workers that never reply
        self.on_send = lambda worker, items: None

    def put(self, job):
        self.puts += 1
        return job

    def start_worker(self, avoid):
        self.avoided = avoid
        self.started += 1
        self.workers[self.started], self.hands[self.started] = None, []
        self.place()
        return self.started

    def await_ready(self, worker):
        node = self.workers[worker]
        if node is None:
            return  # reported once a slot is free
        if node in self.unfit:
            self.events.put(Failed(worker, UnfitNode(self.unfit[node], node)))
        else:
            self.events.put(Ready(worker, node, dict(self.info)))

    def place(self):
        """Place waiting workers, including lost ones, on nodes with free slots."""
        for name, room in self.rooms.items():
            for worker in [worker for worker, node in self.workers.items() if node is None]:
                free = room - sum(node == name for node in self.workers.values())
                if free > 0 and name not in self.avoided:
                    self.workers[worker] = name
                    self.await_ready(worker)

    def send(self, worker, chunk, number, job, items):
        self.sent.append((worker, list(items)))
        self.hands[worker].append(chunk)
        self.on_send(worker, items)
        if self.workers[worker] is None and chunk in self.hands[worker]:
            self.lose(worker, "it is not there")
        elif chunk in self.hands[worker] and worker not in self.silent:
            self.hands[worker].remove(chunk)
            results = results_of(items, [(number, item**2) for item in items])
            results.raised = {item: f"raised in {number}" for item in items if item % 5 == 3}
            self.events.put(Reply(worker, chunk, self.workers[worker], results, 0.0))

    def end_worker(self, worker):
        self.workers.pop(worker, None)
        self.place()

    def nodes(self):
        return {name: Node(f"10.0.0.{name}", room) for name, room in self.rooms.items()}

    def close(self):
        self.workers.clear()

    def lose(self, worker, reason="killed", for_good=False):
        """End a worker's process. Ray restarts it on a node with free slots: here, immediately."""
        self.workers[worker] = None
        for chunk in self.hands[worker]:
            self.events.put(Lost(worker, chunk, reason, for_good))
        self.hands[worker] = []
        for name, room in self.rooms.items():
            if sum(node == name for node in self.workers.values()) < room:
                self.workers[worker] = name
                break

    def lose_node(self, name):
        self.rooms.pop(name)
        for worker in [worker for worker, node in self.workers.items() if node == name]:
            self.lose(worker)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(engine, "_LISTEN_SECONDS", 0.001)
    monkeypatch.setattr(fleet, "_LOOK_SECONDS", 0.0)


def make(cluster, workers=None):
    made = RayEngine(
        cluster, EngineOptions(workers or 1, elastic=workers is None, steps=lambda results: 7 * len(results))
    )
    made.notes = []
    made.on_note = made.notes.append
    return made


def squares(results):
    return [result[1] for result in results.in_order()]


@pytest.mark.parametrize("items", [1, 97])
@pytest.mark.parametrize("refills", [True, False])
def test_results_arrive_once_and_in_order(items, refills):
    cluster = ListedCluster({"1": 2, "2": 1}, refills=refills)
    run = make(cluster)
    for job in (1, 2):
        assert run.run("job", items).in_order() == [(job, item**2) for item in range(items)]
    assert sorted(item for _, sent in cluster.sent for item in sent) == sorted(2 * list(range(items)))
    assert cluster.puts == 2  # the center is sent once per job


def test_there_is_one_worker_per_slot_or_the_requested_number():
    assert make(ListedCluster({"1": 2, "2": 3}))._cluster.started == 5
    assert make(ListedCluster({"1": 2, "2": 3}), workers=4)._cluster.started == 4
    # Unplaced requests tell an autoscaling cluster to grow.
    assert make(ListedCluster({"1": 2}), workers=6)._cluster.started == 6


def test_items_of_a_lost_worker_are_run_by_others_and_it_is_replaced():
    cluster = ListedCluster({"1": 1, "2": 1})
    run = make(cluster)
    lost = []

    def on_send(worker, items):
        if 7 in items and not lost:
            lost.append(worker)
            cluster.lose(worker)

    cluster.on_send = on_send
    assert squares(run.run("job", 20)) == [item**2 for item in range(20)]
    assert cluster.started == 2  # the cluster restarts it
    assert squares(run.run("job", 20)) == [item**2 for item in range(20)]
    assert lost[0] in {worker for worker, _ in cluster.sent[-8:]}
    parts = run._report.nodes.values()
    assert sum(part.lost_chunks for part in parts) >= 1
    assert sum(part.repeated_chunks for part in parts) >= 1
    assert sum(part.items for part in parts) == 2 * 20
    assert sum(part.env_steps for part in parts) == 2 * 20 * 7


def test_leaving_and_joining_nodes_change_only_the_workers():
    cluster = ListedCluster({"1": 1, "2": 2})
    run = make(cluster)
    changes = iter([lambda: cluster.lose_node("2"), lambda: cluster.rooms.update({"3": 4})])

    def on_send(worker, items):
        if len(cluster.sent) in (3, 12):
            next(changes)()

    cluster.on_send = on_send
    assert squares(run.run("job", 60)) == [item**2 for item in range(60)]
    assert squares(run.run("job", 60)) == [item**2 for item in range(60)]
    assert sorted(cluster.workers.values()) == ["1", "3", "3", "3", "3"]
    assert any("10.0.0.2 left the cluster" in note for note in run.notes)
    assert any("10.0.0.3 joined the cluster" in note for note in run.notes)


def test_a_run_without_nodes_waits_reports_it_and_continues(monkeypatch):
    monkeypatch.setattr(fleet, "_SILENCE_SECONDS", 0.0)
    cluster = ListedCluster({"1": 0})
    run = make(cluster)

    def note(text):
        run.notes.append(text)
        if "waiting for the cluster" in text:
            cluster.rooms["2"] = 1
            cluster.place()

    run.on_note = note
    assert squares(run.run("job", 9)) == [item**2 for item in range(9)]
    assert sum("no node has room for a worker (1 node)" in text for text in run.notes) == 1


def test_replies_of_the_previous_job_are_ignored():
    cluster = ListedCluster({"1": 1, "2": 1})
    run = make(cluster)
    run.run("job", 12)
    for chunk in range(1, len(cluster.sent) + 1):
        cluster.events.put(Reply(1, chunk, "1", results_of(range(12), ["wrong"] * 12), 0.0))
        cluster.events.put(Lost(2, chunk, "late news"))
    results = run.run("job", 12)
    assert results.in_order() == [(2, item**2) for item in range(12)]
    assert results.raised == {3: "raised in 2", 8: "raised in 2"}
    assert not any(part.lost_chunks for part in run._report.nodes.values())


def test_items_of_a_worker_that_does_not_restart_are_run_by_a_new_one():
    cluster = ListedCluster({"1": 2}, slots=8)
    run = make(cluster)
    cluster.on_send = lambda worker, items: worker == 1 and cluster.lose(1, for_good=True)
    assert squares(run.run("job", 60)) == [item**2 for item in range(60)]
    assert sorted(run._workers) == [2, 3]


def test_exceptions_of_the_work_are_raised_in_the_driver():
    problems = [EnvironmentFailure("it broke"), InputError("it broke"), EngineFailure("it broke")]
    # The last is not raised by the work; those are converted to Escalade's.
    for problem in [*problems, KeyError("x")]:
        cluster = ListedCluster({"1": 1})
        cluster.silent.add(1)
        cluster.on_send = lambda worker, items, c=cluster, p=problem: c.events.put(Failed(worker, p))
        kind, words = (
            (type(problem), "^it broke$") if problem in problems else (EngineFailure, "KeyError: 'x'")
        )
        with pytest.raises(kind, match=words):
            make(cluster).run("job", 3)


def test_an_exception_is_converted_to_a_picklable_one_with_the_full_message():
    import pickle

    def raised(problem, cause=None):
        try:
            raise problem from cause
        except BaseException as caught:  # noqa: BLE001 - as an actor does
            return pickle.loads(pickle.dumps(actor._as_escalade_error(caught, "n1")))

    broken = raised(EnvironmentFailure("it broke"))
    assert (type(broken), str(broken)) == (EnvironmentFailure, "it broke")
    other = raised(SystemExit(3))
    assert (type(other), str(other)) == (EngineFailure, "a worker failed: SystemExit: 3")
    assert "Traceback" in other.__notes__[0]
    absent = raised(InputError("no envs"), ImportError("No module", name="my_envs"))
    message = "cannot import my_envs (no envs); install its package on every node"
    assert (type(absent), str(absent), absent.node) == (UnfitNode, message, "n1")


def test_a_run_ends_if_every_worker_dies():
    cluster = ListedCluster({"1": 1})
    cluster.on_send = lambda worker, items: cluster.lose(worker, "out of memory")
    with pytest.raises(EngineFailure, match=r"workers died 20 times in a row .* out of memory"):
        make(cluster).run("job", 3)


def test_a_chunk_that_kills_workers_is_split_until_it_succeeds():
    cluster = ListedCluster({"1": 1}, slots=64)
    cluster.on_send = lambda worker, items: len(items) > 2 and cluster.lose(worker)
    assert squares(make(cluster).run("job", 40)) == [item**2 for item in range(40)]


def test_only_versions_known_on_both_sides_are_compared():
    ours = {"python": "3.11.7", "torch": "2.13.0"}
    assert not difference({"python": "3.11.7", "envpool": "1.0"}, ours)
    assert difference({"torch": "2.4.0"}, ours) == "torch 2.4.0 (here 2.13.0)"


def test_a_node_that_differs_from_the_others_is_named():
    cluster = ListedCluster({"1": 1, "2": 1})
    cluster.unfit["2"] = "has torch 2.4.0 (here 2.13.0): install"
    with pytest.raises(InputError, match=r"^node 10.0.0.2 has torch 2.4.0 \(here 2.13.0\): install$"):
        make(cluster).run("job", 20)
    # A run that has started continues without it.
    cluster = ListedCluster({"1": 1})
    run = make(cluster)
    run.run("job", 20)
    cluster.unfit["2"] = "has torch 2.4.0"
    cluster.rooms["2"] = 1
    for _ in range(2):
        assert squares(run.run("job", 20)) == [item**2 for item in range(20)]
    assert run.notes[-1] == "node 10.0.0.2 has torch 2.4.0; the node is not used"
    assert list(cluster.workers.values()) == ["1"]


def test_chunks_are_whole_shares_if_they_fit_and_pieces_otherwise():
    cluster = ListedCluster({"1": 1, "2": 1}, slots=64)
    make(cluster).run("job", 100)
    assert [len(items) for _, items in cluster.sent] == [50, 50]
    cluster = ListedCluster({"1": 1, "2": 1}, slots=8)
    make(cluster).run("job", 100)
    assert max(len(items) for _, items in cluster.sent) == 3


def test_a_job_that_times_out_is_abandoned_and_the_next_one_runs():
    cluster = ListedCluster({"1": 1})
    cluster.silent = {1}
    run = make(cluster)
    calls = []

    def enough():
        calls.append(len(cluster.sent))
        if len(calls) > 3:
            raise TimeoutError

    run.on_wait = enough
    with pytest.raises(TimeoutError):
        run.run("job", 3)
    assert calls[0] > 0  # not called before a worker exists
    cluster.silent = set()
    run.on_wait = lambda: None
    assert squares(run.run("job", 3)) == [0, 1, 4]


def test_an_actor_drops_unfinished_work_when_the_next_job_arrives():
    class Endless:
        def begin(self, job):
            self.job = job

        def run(self, feed):
            while items := feed.take(1, wait=True):
                while self.job == "endless":
                    feed.alive()
                feed.put(items[0], self.job)

    feed = actor.ChunkFeed()
    threading.Thread(target=feed.serve, args=(Endless(),), daemon=True).start()
    feed.switch_to(1, "endless")
    dropped = feed.add(1, [0])
    feed.switch_to(2, "job")
    done = feed.add(2, [7])
    assert dropped.result(60) is None
    assert done.result(60).in_batches() == [([7], ["job"])]


def test_items_requested_twice_belong_to_the_later_chunk():
    feed = actor.ChunkFeed()
    feed.switch_to(1, "job")
    feed._new_job = False  # the job has started
    first, other = feed.add(1, [0, 1, 2]), feed.add(1, [5])
    again = feed.add(1, [0, 1])
    assert first.result(0) is None
    assert feed.take(9, wait=False) == [5, 0, 1]
    for item in (0, 5, 9):  # the last was not requested
        feed.put_raised(item, f"item {item} raised")
    feed.put_many([0, 1, 5], [10, 11, 15])
    found = [chunk.result(0) for chunk in (again, other)]
    assert [results.in_batches() for results in found] == [[([0, 1], [10, 11])], [([5], [15])]]
    assert [results.raised for results in found] == [{0: "item 0 raised"}, {5: "item 5 raised"}]


def test_broken_work_fails_every_chunk_and_the_next_job():
    feed, problem = actor.ChunkFeed(), EngineFailure("it broke")
    feed.switch_to(1, "job")
    chunks = [feed.add(1, [0, 1]), feed.add(1, [2])]
    feed.fail(problem)
    feed.switch_to(2, "job")
    assert [chunk.exception(0) for chunk in [*chunks, feed.add(2, [0])]] == [problem] * 3


def test_results_go_to_the_chunks_that_requested_them():
    class Mixed:
        def begin(self, job):
            pass

        def run(self, feed):
            taken = []
            while len(taken) < 4:
                taken += feed.take(4, wait=True)
            feed.put_many(np.array([3, 0]), np.array([[30.0], [0.0]]))
            feed.put(2, [20.0])
            feed.put_many([1, 9], [[10.0], [90.0]])  # the last was not requested
            feed.take(4, wait=True)

    def answered(chunk):
        results = chunk.result(60).in_batches()
        return {int(item): row[0] for items, rows in results for item, row in zip(items, rows, strict=True)}

    feed = actor.ChunkFeed()
    threading.Thread(target=feed.serve, args=(Mixed(),), daemon=True).start()
    feed.switch_to(1, "job")
    first, second = feed.add(1, [0, 2]), feed.add(1, [1, 3])
    assert (answered(first), answered(second)) == ({0: 0.0, 2: 20.0}, {1: 10.0, 3: 30.0})


def test_a_local_cluster_is_started_without_an_address(monkeypatch):
    class Ray:
        def is_initialized(self):
            return False

        def init(self, **options):
            self.address, self.options = options["address"], options
            return self

    ray = Ray()
    monkeypatch.setattr(connection, "_import_ray", lambda: ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    connection.Connection(None, {"CPU": 2.5, "slot": 4.0, "GPU": 1.0, "memory": 1e9})
    assert ray.address == "local"  # ignore other clusters on this machine
    assert (ray.options["num_cpus"], ray.options["resources"]) == (3, {"slot": 4.0})
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    connection.Connection(None, {"CPU": 2.0})
    assert ray.address == "auto"


def test_messages_of_a_worker_are_printed_with_the_name_of_its_node():
    cluster = ListedCluster({"1": 1})
    run = make(cluster)
    run.run("job", 12)
    cluster.events.put(Reply(1, 99, "1", None, 0.0, ["member 3 gave no sign of life"]))
    run.run("job", 12)
    assert [text for text in run.notes if "member 3" in text] == ["10.0.0.1: member 3 gave no sign of life"]


@pytest.mark.parametrize(
    ("problem", "kind", "message"),
    [
        (ValueError("only whole GPUs"), InputError, r"^`worker_resources` \{'GPU': 1.5\}: only whole GPUs$"),
        (KeyboardInterrupt("no"), KeyboardInterrupt, r"^no$"),
    ],
)
def test_a_cluster_is_closed_if_its_first_worker_cannot_be_requested(problem, kind, message, monkeypatch):
    listed, closed = ListedCluster({"1": 1}), []

    def start_worker(avoid):
        raise problem

    listed.start_worker, listed.close = start_worker, lambda: closed.append(True)
    monkeypatch.setattr(engine, "RayCluster", lambda factory, options: listed)
    with pytest.raises(kind, match=message):
        engine.start(object, EngineOptions(1, worker_resources={"GPU": 1.5}))
    assert closed == [True]


def test_unpicklable_work_is_refused_before_joining_a_cluster(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("escalade.wings.cluster.ray.cluster.Connection", lambda *how: opened.append(how))
    message = r"the work cannot be sent to worker processes .*use `workers=0` or `engine=threads`"
    with (tmp_path / "open").open("w") as file, pytest.raises(InputError, match=message):
        RayCluster(lambda: file, EngineOptions(1))
    assert opened == []
