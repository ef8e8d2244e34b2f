"""``plot`` draws a single run in full, seeds as one curve, and one curve per configuration."""

import re
import shutil

import pytest

import escalade
from escalade.cli import main as cli


def drawn(picture):
    """Return the texts in an SVG."""
    return re.findall(r"<!-- (.*?) -->", picture.read_text())


def plot(*arguments, to):
    assert cli.main(["plot", *map(str, arguments), "--output", str(to)]) == 0
    return drawn(to)


def test_seeds_share_a_curve_and_configurations_get_one_each(sigmas, tmp_path, capsys):
    written = plot(sigmas / "0.1", to=tmp_path / "seeds.svg")
    assert {"ars (2 runs)", "training steps"} <= set(written)
    written = plot(sigmas, to=tmp_path / "both.svg")
    labels = [text for text in written if "runs)" in text]
    assert labels == ["ars, sigma=0.1 (2 runs)", "ars, sigma=0.5 (2 runs)"]
    assert "population mean" not in written
    assert capsys.readouterr().out.split() == [str(tmp_path / "seeds.svg"), str(tmp_path / "both.svg")]


def test_a_single_run_is_plotted_in_full(sigmas, tmp_path):
    assert "population mean" in plot(sigmas / "0.1" / "seed1", to=tmp_path / "one.svg")


def test_a_plot_notes_that_members_ran_shorter_episodes(tmp_path, capsys):
    options = {"preset": None, "policy": "linear", "population": 4, "workers": 0, "generations": 2}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "run", cutoff=5, eval_every=1, **options)
    assert "members' episodes are cut (cutoff 5)" in capsys.readouterr().out
    assert "population mean, episodes cut short" in plot(run.folder.path, to=tmp_path / "cut.svg")


def test_curves_can_be_grouped_and_labeled(sigmas, tmp_path):
    every = plot(sigmas, "--group-by", "seed", "--x", "seconds", to=tmp_path / "c.svg")
    assert {"seed=1 (2 runs)", "seed=2 (2 runs)", "seconds of training"} <= set(every)
    named = plot(
        sigmas, "--labels", "small, large", "--x", "generations", "--smooth", "2", to=tmp_path / "c.svg"
    )
    assert {"small (2 runs)", "large (2 runs)", "generations"} <= set(named)


def test_a_run_without_an_evaluation_is_left_out_and_named(sigmas, tmp_path, capsys):
    shutil.copytree(sigmas, tmp_path / "runs")
    young = tmp_path / "runs" / "0.5" / "seed2"
    lines = (young / "progress.csv").read_text().splitlines()
    (young / "progress.csv").write_text(lines[0] + "\n")
    assert "ars, sigma=0.5 (1 run)" in plot(tmp_path / "runs", to=tmp_path / "c.svg")
    assert capsys.readouterr().out.splitlines()[0] == f"left out: {young} has no evaluation yet"


@pytest.mark.parametrize(
    ("typed", "fragments"),
    [
        ("--x days", ["--x 'days' must be one of steps, seconds, generations, episodes"]),
        ("--smooth 0", ["--smooth '0'", "at least 1"]),
        ("--group-by sgma", ["--group-by", "'sgma'", "did you mean sigma"]),
        ("--labels one", ["--labels", "has 1 name for 2 curves", "sigma=0.5"]),
        ("--labels one,one", ["--labels", "pass distinct names for"]),
    ],
)
def test_wrong_input_is_reported_in_one_line(typed, fragments, sigmas, capsys):
    assert cli.main(["plot", str(sigmas), *typed.split()]) == 2
    message = capsys.readouterr().err
    assert len(message.splitlines()) == 1
    assert all(fragment in message for fragment in fragments), message
