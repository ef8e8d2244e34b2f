"""The driver's side of the Ray engine, on a cluster that is a list: every order of events can be had."""

import asyncio
import threading
from queue import SimpleQueue

import pytest

from escalade import EngineFailure, EnvironmentFailure, InputError
from escalade.engines import EngineOptions
from escalade.engines.ray import actor, engine, fleet
from escalade.engines.ray.engine import RayEngine
from escalade.engines.ray.messages import Failed, Lost, Node, Ready, Reply
from escalade.engines.ray.work import Items

VERSIONS = {"Python": "3.11.7", "torch": "2.13.0"}


class ListedCluster:
    """Workers are numbers; a chunk is answered when the engine next waits, unless the test says otherwise."""

    def __init__(self, rooms, slots=4, refills=True):
        self.events = SimpleQueue()
        self.versions = dict(VERSIONS)
        self.dashboard = None
        self.rooms = dict(rooms)
        self.info = {"slots": slots, "refills": refills}
        self.workers = {}  # number: node, None while there is no room
        self.started = self.puts = 0
        self.sent = []
        self.avoided = ()
        self.theirs = {}  # versions by node
        self.silent = set()  # workers that never answer
        self.on_send = lambda worker, items: None

    def put(self, job):
        self.puts += 1
        return job

    def start_worker(self, avoid):
        self.avoided = avoid
        self.started += 1
        self.workers[self.started] = None
        self.place()
        return self.started

    def place(self):
        """Find room for workers that wait for it."""
        for name, room in self.rooms.items():
            for worker in [worker for worker, node in self.workers.items() if node is None]:
                free = room - sum(node == name for node in self.workers.values())
                if free > 0 and name not in self.avoided:
                    self.workers[worker] = name
                    versions = VERSIONS | self.theirs.get(name, {})
                    self.events.put(Ready(worker, name, dict(self.info), versions))

    def send(self, worker, chunk, number, job, items):
        self.sent.append((worker, list(items)))
        self.on_send(worker, items)
        if worker in self.workers and worker not in self.silent:
            self.events.put(Reply(worker, chunk, [(items, [(number, item**2) for item in items])], 0.0))

    def end_worker(self, worker):
        self.workers.pop(worker, None)
        self.place()

    def nodes(self):
        return {name: Node(f"10.0.0.{name}", room) for name, room in self.rooms.items()}

    def close(self):
        self.workers.clear()

    def lose(self, worker, reason="killed"):
        if self.workers.pop(worker, None):
            self.events.put(Lost(worker, reason))

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
    return [result[1] for result in results]


@pytest.mark.parametrize("items", [1, 5, 6, 97])
@pytest.mark.parametrize("refills", [True, False])
def test_results_come_once_and_in_order(items, refills):
    cluster = ListedCluster({"1": 2, "2": 1}, refills=refills)
    run = make(cluster)
    for job in (1, 2):
        assert run.run("job", items) == [(job, item**2) for item in range(items)]
    assert sorted(item for _, sent in cluster.sent for item in sent) == sorted(2 * list(range(items)))
    assert cluster.puts == 2  # the centre travels once a job


def test_there_is_a_worker_for_every_place_or_as_many_as_asked_for():
    assert make(ListedCluster({"1": 2, "2": 3}))._cluster.started == 5
    assert make(ListedCluster({"1": 2, "2": 3}), workers=4)._cluster.started == 4
    # A cluster that can grow sees by requests without room that it should.
    assert make(ListedCluster({"1": 2}), workers=6)._cluster.started == 6


def test_what_a_lost_worker_had_is_run_by_others_and_it_is_replaced():
    cluster = ListedCluster({"1": 1, "2": 1})
    run = make(cluster)
    lost = []

    def on_send(worker, items):
        if 7 in items and not lost:
            lost.append(worker)
            cluster.lose(worker)

    cluster.on_send = on_send
    assert squares(run.run("job", 20)) == [item**2 for item in range(20)]
    assert cluster.started == 3
    assert len(cluster.workers) == 2
    parts = run.report.nodes.values()
    assert sum(part.lost_chunks for part in parts) >= 1
    assert sum(part.repeated_chunks for part in parts) >= 1
    assert sum(part.items for part in parts) == 20
    assert sum(part.env_steps for part in parts) == 20 * 7


def test_a_node_that_leaves_and_one_that_joins_change_nothing_but_the_workers():
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
    # Requests that nobody can meet any more were taken back.
    assert None not in cluster.workers.values()


def test_without_nodes_a_run_waits_says_so_and_goes_on(monkeypatch):
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
    assert sum("no node has room for a worker (1 node is there)" in text for text in run.notes) == 1


def test_what_is_late_is_given_to_an_idle_worker_and_counts_once(monkeypatch):
    monkeypatch.setattr(engine, "_LATE_SECONDS", 0.0)
    cluster = ListedCluster({"1": 1, "2": 1})
    cluster.silent.add(1)
    run = make(cluster)
    assert squares(run.run("job", 12)) == [item**2 for item in range(12)]
    first = [items for worker, items in cluster.sent if worker == 1]
    second = [items for worker, items in cluster.sent if worker == 2]
    assert first
    assert all(items in second for items in first)
    assert sum(part.items for part in run.report.nodes.values()) == 12


def test_a_late_worker_that_answers_in_the_next_job_is_not_listened_to(monkeypatch):
    monkeypatch.setattr(engine, "_LATE_SECONDS", 0.0)
    cluster = ListedCluster({"1": 1, "2": 1})
    cluster.silent.add(1)
    run = make(cluster)
    run.run("job", 12)
    cluster.silent.clear()
    for chunk in range(1, len(cluster.sent) + 1):
        cluster.events.put(Reply(1, chunk, [(range(12), ["wrong"] * 12)], 0.0))
    assert run.run("job", 12) == [(2, item**2) for item in range(12)]


def test_what_the_work_raises_is_raised_here():
    for kind in (EnvironmentFailure, InputError):
        cluster = ListedCluster({"1": 1})
        cluster.on_send = lambda worker, items, c=cluster, k=kind: c.events.put(
            Failed(worker, k, "it broke", "", "")
        )
        cluster.silent.add(1)
        with pytest.raises(kind, match=r"^it broke$"):
            make(cluster).run("job", 3)
    cluster = ListedCluster({"1": 1})
    cluster.silent.add(1)
    cluster.on_send = lambda worker, items: cluster.events.put(Failed(worker, None, "KeyError: 'x'", "trace"))
    with pytest.raises(EngineFailure, match=r"a worker failed: KeyError: 'x'") as caught:
        make(cluster).run("job", 3)
    assert caught.value.__notes__ == ["trace"]


def test_workers_that_only_die_end_the_run():
    cluster = ListedCluster({"1": 1})
    cluster.on_send = lambda worker, items: cluster.lose(worker, "out of memory")
    with pytest.raises(EngineFailure, match=r"workers died 20 times in a row .* out of memory"):
        make(cluster).run("job", 3)


def test_a_share_that_kills_workers_is_cut_until_it_gets_through():
    cluster = ListedCluster({"1": 1}, slots=64)
    cluster.on_send = lambda worker, items: len(items) > 2 and cluster.lose(worker)
    assert squares(make(cluster).run("job", 40)) == [item**2 for item in range(40)]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            {"theirs": {"2": {"torch": "2.4.0"}}},
            r"node 10.0.0.2 has torch 2.4.0 \(here 2.13.0\): install",
        ),
        ({}, "node 10.0.0.2 cannot import my_envs .* install its package on every node"),
    ],
)
def test_a_node_that_is_not_like_the_others_is_named(event, words):
    def spoil(cluster):
        cluster.theirs = event.get("theirs", {})
        if not cluster.theirs:
            place = cluster.place

            def failing():
                place()
                for worker, node in list(cluster.workers.items()):
                    if node == "2":
                        cluster.events.put(Failed(worker, None, "No module", "", "2", "my_envs"))

            cluster.place = failing

    cluster = ListedCluster({"1": 1, "2": 1})
    spoil(cluster)
    with pytest.raises(InputError, match=words):
        make(cluster).run("job", 20)
    # A run that has begun goes on without it.
    cluster = ListedCluster({"1": 1})
    run = make(cluster)
    run.run("job", 20)
    spoil(cluster)
    cluster.rooms["2"] = 1
    for _ in range(2):
        assert squares(run.run("job", 20)) == [item**2 for item in range(20)]
    assert any("it is not used" in note for note in run.notes)
    assert list(cluster.workers.values()) == ["1"]


def test_chunks_are_a_whole_share_where_it_fits_and_pieces_otherwise():
    cluster = ListedCluster({"1": 1, "2": 1}, slots=64)
    make(cluster).run("job", 100)
    assert [len(items) for _, items in cluster.sent] == [50, 50]
    cluster = ListedCluster({"1": 1, "2": 1}, slots=8)
    make(cluster).run("job", 100)
    assert max(len(items) for _, items in cluster.sent) == 3


def fresh(batches):
    return {int(item): result for items, rows in batches for item, result in zip(items, rows, strict=True)}


def test_an_item_given_back_and_an_item_done_twice_count_once():
    items = Items(4, 1)
    items.chunks = {}
    from escalade.engines.ray.work import Chunk

    first, _ = items.take(4)
    items.chunks[1] = Chunk("a", first, 0.0)
    items.chunks[2] = Chunk("b", first[:2], 0.0, repeat=True)
    assert fresh(items.finish(2, [([1, 0], ["y", "x"])])) == {0: "x", 1: "y"}
    assert items.give_back(1)
    again, repeated = items.take(4)
    assert (again, repeated) == (first[2:], True)
    items.chunks[3] = Chunk("b", first, 0.0)
    assert fresh(items.finish(3, [([0, 1, 2, 3], ["no", "no", "z", "w"])])) == {2: "z", 3: "w"}
    assert items.results.in_order() == ["x", "y", "z", "w"]
    assert not items.left


def test_a_job_that_is_waited_for_too_long_is_given_up_and_the_next_one_runs():
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
    assert calls[0] > 0  # it is not asked before there is a worker
    cluster.silent = set()
    run.on_wait = lambda: None
    assert squares(run.run("job", 3)) == [0, 1, 4]


def test_an_actor_drops_work_without_an_end_when_the_next_job_comes():
    class Endless:
        def begin(self, job):
            self.job = job

        def run(self, feed):
            while items := feed.take(1, wait=True):
                while self.job == "endless":
                    feed.alive()
                feed.put(items[0], self.job)

    async def serve():
        feed = actor._ChunkFeed(asyncio.get_running_loop())
        threading.Thread(target=feed.serve, args=(Endless(),), daemon=True).start()
        feed.turn_to(1, "endless")
        dropped = feed.add(1, [0])
        feed.turn_to(2, "job")
        done = feed.add(2, [7])
        return await asyncio.wait_for(dropped, 60), await asyncio.wait_for(done, 60)

    dropped, done = asyncio.run(serve())
    assert dropped is None
    assert done == [([7], ["job"])]
