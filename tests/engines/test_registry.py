"""Registry of engines."""

import pytest
from tests.engines.owners import Closes

import escalade
from escalade import InputError
from escalade.config.options import Config
from escalade.engines import InProcessEngine, start_engine
from escalade.engines.processes import ProcessEngine
from escalade.engines.threads import ThreadEngine


class Doubles:
    def info(self):
        return {"slots": 2}

    def begin(self, job):
        self.job = job

    def run(self, feed):
        while items := feed.take(1, wait=True):
            feed.put(items[0], 2 * items[0] + self.job)

    def close(self):
        pass


@pytest.mark.parametrize(
    ("name", "workers", "kind"),
    [
        ("local", 0, InProcessEngine),
        ("threads", 0, InProcessEngine),
        ("local", 2, ProcessEngine),
        ("threads", 2, ThreadEngine),
    ],
)
def test_engines_have_names(name, workers, kind):
    engine = start_engine(name, Doubles, workers)
    try:
        assert isinstance(engine, kind)
        assert engine.run(1, 5).in_order() == [1, 3, 5, 7, 9]
    finally:
        engine.close()


def test_an_unknown_engine_is_named_with_its_nearest():
    with pytest.raises(InputError, match="unknown `engine` 'slurm': it must be one of local, threads"):
        start_engine("slurm", Doubles, 2)
    with pytest.raises(InputError, match="unknown `engine` 'thread'; did you mean threads"):
        Config(env="CartPole-v1", engine="thread")


def test_threads_train_bit_identically(tmp_path):
    small = {"preset": None, "population": 8, "hidden": [8], "generations": 2, "max_episode_steps": 30}
    digests = set()
    for engine, workers in (("threads", 2), ("local", 0)):
        options = small | {"engine": engine, "workers": workers, "run_dir": str(tmp_path / engine)}
        digests.add(escalade.train("CartPole-v1", verbose=False, **options).summary["params_sha256"])
    assert len(digests) == 1


def test_threads_close_their_work_when_one_fails_to_start(tmp_path):
    made = []

    def factory():
        if len(made) == 2:
            raise InputError("no third one")
        made.append(Closes(tmp_path / f"{len(made)}"))
        made[-1].where.mkdir()
        return made[-1]

    with pytest.raises(InputError, match="no third one"):
        start_engine("threads", factory, 3)
    assert [len(list(work.where.glob("closed-*"))) for work in made] == [1, 1]
