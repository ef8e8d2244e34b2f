"""Curves and films are produced without a display, and hold what they should."""

import gc
import struct

import gymnasium
import imageio.v3 as imageio
import numpy as np
import pytest

import escalade
from escalade import EnvironmentFailure, InputError
from escalade.envs import resolve
from escalade.media.curves import plot_runs
from escalade.media.video import record_episode


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "run"
    options = {"population": 4, "workers": 0, "generations": 3, "hidden": [4], "eval_every": 1}
    return escalade.train(
        "CartPole-v1", preset=None, verbose=False, run_dir=str(folder), target_return=400.0, **options
    )


def test_a_run_leaves_a_curve(run):
    data = run.folder.curve.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 800
    assert height >= 400
    picture = imageio.imread(run.folder.curve)
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 20


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_curves_of_several_runs(ending, start, run, tmp_path):
    plot_runs([run.folder.path, run.folder.path], tmp_path / f"c.{ending}")
    assert (tmp_path / f"c.{ending}").read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 1


# imageio leaves it to the collector to close the pipes of the film that is read back.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_a_film_has_a_frame_a_step(ending, run, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    output = tmp_path / f"film.{ending}"
    total, steps = escalade.render(run.folder.path, output, seed=3, max_steps=12)
    assert 8 <= steps <= 12
    assert total == steps
    frames = imageio.imread(output, index=None if ending == "gif" else ...)
    # Gifs keep every second frame of CartPole's 50 a second, and of equal ones in a row only one.
    assert 3 <= len(frames) <= (steps + 2) // 2 if ending == "gif" else len(frames) == steps + 1
    assert frames[0].std() > 1
    assert not np.array_equal(frames[0], frames[-1])
    assert len(list(tmp_path.iterdir())) == 1
    gc.collect()


class Still:
    def act(self, observation):
        return 0


class Lost:
    def act(self, observation):
        raise RuntimeError("which way?")


def test_an_episode_on_film_is_the_episode_of_its_seed(tmp_path):
    total, steps = record_episode(resolve("CartPole-v1"), Still(), tmp_path / "f.gif", seed=5)
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=5)
    expected, ended = 0, False
    while not ended:
        *_, ended, _, _ = env.step(0)
        expected += 1
    assert (total, steps) == (expected, expected)


def test_a_film_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(EnvironmentFailure, match="which way"):
        record_episode(resolve("CartPole-v1"), Lost(), tmp_path / "f.gif")
    with pytest.raises(InputError, match=r"\.mp4 or \.gif"):
        record_episode(resolve("CartPole-v1"), Still(), tmp_path / "f.avi")
    with pytest.raises(InputError, match="rgb_array"):
        record_episode(resolve("tests.environments:Walk-v0"), Still(), tmp_path / "f.gif")
    assert list(tmp_path.iterdir()) == []
