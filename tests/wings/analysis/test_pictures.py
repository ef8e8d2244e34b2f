"""Curves and films are produced without a display, and have the expected contents."""

import gc
import re
import shutil

import gymnasium
import imageio.v3 as imageio
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import escalade
from escalade import EnvironmentFailure, InputError
from escalade.envs import resolve
from escalade.envs.pixels.frames import Frames
from escalade.media import video
from escalade.media.charts import Area, Chart, _wrapped
from escalade.media.curves import plot_run, smoothed
from escalade.media.figure import fit_returns, style
from escalade.media.video import record_episode


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "run"
    options = {"preset": None, "population": 4, "workers": 0, "generations": 3, "hidden": [4]}
    options |= {"eval_every": 1, "head": "plain", "target_return": 400.0, "verbose": False}
    return escalade.train("CartPole-v1", run_dir=str(folder), **options)


def test_a_run_writes_a_learning_curve(run):
    picture = imageio.imread(run.folder.curve)
    assert picture.shape[0] >= 400
    assert picture.shape[1] >= 800
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 20


@pytest.mark.filterwarnings("ignore:.*returned nan:RuntimeWarning")
def test_runs_of_evolve_and_runs_without_finite_returns_write_a_curve(tmp_path):
    options = {"population": 4, "generations": 3, "verbose": False}
    escalade.evolve(torch.nn.Linear(1, 1), lambda module: 0.0, run_dir=tmp_path / "a", **options)
    env = "tests.environments:Diverges-v0"
    escalade.train(env, run_dir=tmp_path / "b", workers=0, hidden=(4,), cutoff=9, **options)
    for name in "ab":
        assert (tmp_path / name / "curve.png").stat().st_size > 1000


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_curve_can_be_a_png_a_pdf_or_an_svg(ending, start, run, tmp_path):
    plot_run(run.folder.path, tmp_path / f"c.{ending}")
    drawn = (tmp_path / f"c.{ending}").read_bytes()
    assert drawn.startswith(start)
    assert len(list(tmp_path.iterdir())) == 1
    plot_run(run.folder.path, tmp_path / f"c.{ending}")
    assert (tmp_path / f"c.{ending}").read_bytes() == drawn
    assert b"CreationDate" not in drawn
    assert b"<dc:date>" not in drawn


# imageio leaves closing the pipes of the read film to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_a_film_has_one_frame_per_step(ending, run, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    output = tmp_path / f"film.{ending}"
    total, steps = escalade.render(run.folder.path, output, seed=3, max_steps=12)
    assert 8 <= steps <= 12
    assert total == steps
    frames = imageio.imread(output, index=None if ending == "gif" else ...)
    # GIFs store every second of CartPole's 50 frames a second, and merge equal consecutive frames.
    assert 3 <= len(frames) <= (steps + 2) // 2 if ending == "gif" else len(frames) == steps + 1
    assert frames[0].std() > 1
    assert not np.array_equal(frames[0], frames[-1])
    assert len(list(tmp_path.iterdir())) == 1
    gc.collect()


class Still:
    def act(self, observation, **_):
        return 0


class Lost:
    def act(self, observation, **_):
        raise RuntimeError("which way?")


def test_a_filmed_episode_equals_the_episode_of_its_seed(tmp_path):
    total, steps = record_episode(resolve("CartPole-v1"), Still(), tmp_path / "f.gif", seed=5)
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=5)
    expected, ended = 0, False
    while not ended:
        *_, ended, _, _ = env.step(0)
        expected += 1
    assert (total, steps) == (expected, expected)


def test_a_film_with_frame_skip_plays_at_the_speed_of_the_environment(tmp_path, monkeypatch):
    rates = []
    monkeypatch.setattr(video, "_write_gif", lambda output, frames, rate: rates.append(rate))
    for skip in (None, 4):
        environment = resolve("CartPole-v1", frames=Frames(frame_skip=skip))
        record_episode(environment, Still(), tmp_path / "f.gif")
    assert rates == [50, 12.5]


def test_a_failed_film_leaves_no_file(tmp_path):
    with pytest.raises(EnvironmentFailure, match="which way"):
        record_episode(resolve("CartPole-v1"), Lost(), tmp_path / "f.gif")
    with pytest.raises(InputError, match=r"\.mp4 or \.gif"):
        record_episode(resolve("CartPole-v1"), Still(), tmp_path / "f.avi")
    with pytest.raises(InputError, match="rgb_array"):
        record_episode(resolve("tests.environments:Walk-v0"), Still(), tmp_path / "f.gif")
    assert list(tmp_path.iterdir()) == []


def texts(picture):
    """Return the texts in an SVG."""
    return re.findall(r"<!-- (.*?) -->", picture.read_text())


def test_a_plot_of_a_run_shows_members_and_evaluations(run, tmp_path):
    plot_run(run.folder.path, tmp_path / "c.svg", 400.0, "pole")
    written = texts(tmp_path / "c.svg")
    assert {"pole", "training steps", "evaluation", "population mean", "target 400"} <= set(written)


def test_the_band_shows_percentiles_if_available(run, tmp_path):
    shutil.copytree(run.folder.path, tmp_path / "run")
    heading = "generation,return_q05,return_q25,return_q50,return_q75,return_q95\n"
    (tmp_path / "run" / "population.csv").write_text(heading + "1,9,10,11,12,13\n2,9,10,11,12,13\n")
    plot_run(tmp_path / "run", tmp_path / "c.svg")
    assert "members, 5th to 95th percentile" in texts(tmp_path / "c.svg")
    (tmp_path / "run" / "population.csv").write_text(heading + "1,9,10")
    plot_run(tmp_path / "run", tmp_path / "c.svg")
    assert "members, worst to best" in texts(tmp_path / "c.svg")


def limits(*curves, around=()):
    figure = Figure()
    axes = figure.subplots()
    fit_returns(
        axes, [np.array(curve, float) for curve in curves], around=[np.array(a, float) for a in around]
    )
    return *axes.get_ylim(), [text.get_text() for text in axes.texts]


def test_an_axis_fits_the_curves_and_notes_what_it_clips():
    low, high, message = limits(range(100))
    assert (low < 0, high > 99, message) == (True, True, [])
    low, high, message = limits([-6000, *range(100)])  # one outlier
    assert (-10 < low < 3, 99 < high < 110) == (True, True)
    assert message == ["axis truncated: values extend to -6,000"]
    low, high, message = limits(range(100), around=[[-60000, 5]])
    assert -10 < low < 3
    assert message == ["axis truncated: values extend to -60,000"]
    low, high, message = limits([0, 1, 2, 3, 500])  # the end of a curve is always visible
    assert (high > 500, message) == (True, [])
    low, high, message = limits([7, 7], [np.nan])
    assert low < 7 < high


def test_a_distant_target_is_named_and_does_not_flatten_the_curves(run, tmp_path):
    axes = Figure().subplots()
    assert fit_returns(axes, [np.arange(100.0)], [250.0])
    assert axes.get_ylim()[1] > 250
    assert not fit_returns(axes, [np.arange(100.0)], [2500.0])
    assert axes.get_ylim()[1] < 110
    plot_run(run.folder.path, tmp_path / "c.svg", 1e6)
    assert "target 1,000,000 (outside of the axis)" in texts(tmp_path / "c.svg")


def test_curves_are_distinguishable_without_color():
    styles = [style(number) for number in range(28)]
    assert len({(one["color"], str(one["linestyle"])) for one in styles}) == 28
    assert len({str(one["linestyle"]) for one in styles[:4]}) == 4


def test_a_smoothed_point_is_the_mean_of_the_last_points():
    values = np.array([1.0, 3.0, np.nan, 5.0, 7.0])
    np.testing.assert_allclose(smoothed(values, 2), [1, 2, np.nan, 5, 6])
    np.testing.assert_array_equal(smoothed(values, 1), values)
    np.testing.assert_allclose(smoothed(values, 99), [1, 2, np.nan, 3, 4])
    diverged = np.array([-1e20, 100.0, 100.0, 300.0])  # a huge value leaves later means exact
    np.testing.assert_allclose(smoothed(diverged, 2)[2:], [100, 200])


def test_labels_that_start_with_an_underscore_stay_in_the_legend():
    assert [_wrapped(label).startswith("_") for label in ("_old", "new_", "__")] == [False] * 3
    assert _wrapped("new_") == "new_"


def test_an_area_without_a_label_is_not_described():
    edge = np.zeros(2)
    chart = Chart("pole", "steps", areas=[Area("", edge, edge, edge), Area("spread", edge, edge, edge)])
    assert chart.describe() == "Over steps. spread."
