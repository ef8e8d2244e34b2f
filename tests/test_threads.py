"""Several threads train at once, like a sweep with Optuna's n_jobs.

Each gets the same result as alone, and the state of the process is restored.
"""

import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch
from tests.commands import DEADLINE

import escalade
from escalade.engines import start_engine
from escalade.envs.process import quiet
from escalade.support.exact import one_thread

TINY = {"preset": None, "population": 4, "hidden": [4], "generations": 2, "max_episode_steps": 5}
TINY |= {"eval_episodes": 1, "verbose": False}


def process_state():
    return {
        "output": [(os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in (1, 2)],
        "environment": {name: value for name, value in os.environ.items() if "PYTEST" not in name},
        "main": sys.modules["__main__"],
        "warnings": list(warnings.filters),
        "torch": torch.get_num_threads(),
    }


def digest(folder, seed, workers):
    run = escalade.train("Pendulum-v1", seed=seed, workers=workers, run_dir=str(folder), **TINY)
    return run.summary["params_sha256"]


def test_training_in_four_threads_equals_training_in_one(tmp_path):
    alone = {seed: digest(tmp_path / f"alone{seed}", seed, 0) for seed in range(2)}
    before = process_state()
    start = threading.Barrier(4)

    def sweep(number):
        start.wait()
        return number % 2, digest(tmp_path / str(number), number % 2, workers=number // 2)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(sweep, range(4)))
    assert results == [(number % 2, alone[number % 2]) for number in range(4)]
    assert process_state() == before


def test_threads_that_leave_in_a_different_order_restore_the_setting():
    # The first enters, the second enters, the first leaves, the second leaves.
    for context in (quiet, one_thread):
        before = process_state()
        inside, leave = threading.Event(), threading.Event()

        def stay(context=context, inside=inside, leave=leave):
            with context():
                inside.set()
                leave.wait(DEADLINE)

        thread = threading.Thread(target=stay)
        with context():
            thread.start()
            inside.wait(DEADLINE)
        leave.set()
        thread.join()
        assert process_state() == before


def test_one_thread_stays_in_effect_after_a_different_thread_leaves():
    inside, leave, found = threading.Event(), threading.Event(), []

    def stay():
        with one_thread():
            inside.set()
            leave.wait(DEADLINE)
            found.append(torch.get_num_threads())
            late = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
            late.start()
            late.join()

    threads, thread = torch.get_num_threads(), threading.Thread(target=stay)
    torch.set_num_threads(2)
    try:
        with one_thread():
            thread.start()
            inside.wait(DEADLINE)
        assert torch.get_num_threads() == 2
        leave.set()
        thread.join()
        assert found == [1, 1]
        late = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        late.start()
        late.join()
        assert found[2] == 2
    finally:
        torch.set_num_threads(threads)


def test_threads_share_the_episodes_of_a_generation():
    taken = []

    class Slots:
        def info(self):
            return {"slots": 64, "refills": True}

        def begin(self, job):
            """Do nothing."""

        def run(self, feed):
            while items := feed.take(64, wait=True):
                taken.append(len(items))
                for item in items:
                    feed.put(item, item)

        def close(self):
            """Do nothing."""

    engine = start_engine("threads", Slots, 4)
    try:
        assert engine.run(None, 32).in_order() == list(range(32))
    finally:
        engine.close()
    assert max(taken) == 8
