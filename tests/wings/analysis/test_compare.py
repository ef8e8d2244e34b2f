"""Comparisons of runs by configuration and across tasks, in every output format."""

import csv
import io
import json
import shutil
import sys

import numpy as np
import pytest
import torch
from tests.commands import summary

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.support.numbers import number, plain
from escalade.wings.analysis.scores import parse_bounds, score

OPTIONS = {"preset": None, "verbose": False, "policy": "linear", "population": 4, "workers": 0}
OPTIONS |= {"generations": 4, "eval_every": 1, "eval_episodes": 2, "max_episode_steps": 20}
BOUNDS = {"CartPole-v1": (0.0, 20.0), "Acrobot-v1": (-40.0, 0.0)}


@pytest.fixture(scope="module")
def runs(sigmas, museum):
    more = museum.show("a third seed and another task", make_more)
    seeds = [sigmas / place for place in ("0.1/seed1", "0.1/seed2", "0.5/seed1", "0.5/seed2")]
    return [*seeds, more / "third", more / "acrobot"]


def make_more(folder):
    other = OPTIONS | {"generations": 5, "target_return": 5.0}
    escalade.train("CartPole-v1", seed=3, run_dir=folder / "third", sigma=0.1, **other)
    escalade.train("Acrobot-v1", seed=1, run_dir=folder / "acrobot", sigma=0.1, **OPTIONS)


@pytest.fixture(scope="module")
def found(runs):
    return escalade.compare([*runs, runs[0]])  # a run listed twice counts once


def test_runs_are_grouped_by_environment_and_configuration(found):
    assert [(line.env, line.label, len(line.runs)) for line in found.lines] == [
        ("CartPole-v1", "ars, sigma=0.1", 3),
        ("CartPole-v1", "ars, sigma=0.5", 2),
        ("Acrobot-v1", "ars", 1),
    ]
    assert [line.solved for line in found.lines] == [1, 0, 0]


def test_runs_that_stopped_at_their_target_are_marked_with_their_evaluation_episodes(runs, found):
    episodes = [summary(run)["eval_episodes"] for run in runs]
    assert [(line.at_target, line.eval_episodes) for line in found.lines] == [
        (1, episodes[0] + episodes[1] + episodes[4]),
        (0, 4),
        (0, 2),
    ]
    assert episodes[4] > 2  # the confirmation episodes
    marked, plain, *_ = (line for line in found.to_markdown().splitlines() if line.startswith("| ars"))
    assert marked.split("|")[3].strip().endswith("\\*")
    assert "\\*" not in plain
    assert "1 of 5 runs stopped at their target" in found.to_markdown()


def test_methods_are_scored_across_tasks(runs, tmp_path):
    picture = tmp_path / "profiles.svg"
    found = escalade.compare(runs, group_by=["sigma"], normalize=BOUNDS, output=picture)
    half, *_ = found.scores.methods
    assert [of.label for of in found.scores.methods] == ["sigma=0.1"]
    assert found.scores.left_out == {"sigma=0.5": ("Acrobot-v1",)}
    assert half.runs == 4
    assert half.score.low <= half.score.value <= half.score.high
    assert "<!-- sigma=0.1 (4 runs) -->" in picture.read_text()
    assert "share of runs with a higher score" in picture.read_text()
    assert "left out: sigma=0.5 has no run on Acrobot-v1" in found.to_markdown()
    shown = json.loads(found.to_json())["scores"]["methods"][0]
    assert shown["score"]["value"] == half.score.value
    assert len(shown["profile"]["at"]) == len(shown["profile"]["middle"])


def test_scores_are_normalized_by_the_bounds_of_their_task():
    returns = {"a": {"T": [0, 10], "U": [-1, -3]}, "b": {"T": [5, 5], "U": [-2, -4]}}
    found = score(returns, {"T": (0, 10), "U": (-5, 0)})
    first, second = found.methods
    assert first.score.value == pytest.approx((0.4 + 0.8) / 2)  # of 0, 0.4, 0.8 and 1
    assert second.score.value == pytest.approx(0.5)  # of 0.2, 0.5, 0.5 and 0.6
    assert first.profile.middle[np.searchsorted(first.profile.at, 0.5)] == pytest.approx(0.5)
    (pair,) = found.improvements
    assert (pair.first, pair.second) == ("a", "b")
    assert pair.probability.value == pytest.approx((2 / 4 + 3 / 4) / 2)
    assert pair.probability.low <= pair.probability.value <= pair.probability.high
    nothing = score({"a": {"T": [float("nan")] * 4}, "b": {"T": [-5.0, -8.0]}}, {"T": (0, 10)})
    assert nothing.methods[0].score.value == pytest.approx(-0.8)  # counts as the worst return
    assert nothing.improvements[0].probability.value == pytest.approx(0.25)
    single = score({"a": {"T": [5]}}, {"T": (10, 0)}).methods[0]  # lower is better
    assert (single.score.value, single.score.low) == (0.5, None)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"CartPole-v1": (0, 20)}, "`normalize` has no bounds for Acrobot-v1"),
        (BOUNDS | {"Acrobot-v1": (1, 1)}, "Acrobot-v1=1,1 must be two different finite numbers"),
        (BOUNDS, "no configuration has runs with a return on all 2 tasks.*`group_by`"),
    ],
)
def test_invalid_bounds_are_refused(bounds, message, runs):
    with pytest.raises(InputError, match=message):
        escalade.compare(runs, normalize=bounds)


def test_bounds_are_parsed_with_their_task():
    assert parse_bounds(["ALE/Pong-v5=-20.7,14.6", "Linear: snes=1,0"]) == {
        "ALE/Pong-v5": (-20.7, 14.6),
        "Linear: snes": (1.0, 0.0),
    }
    for wrong in ("1,2", "T=1", "T=1,2,3", "T=a,b", "=1,2"):
        with pytest.raises(InputError, match="`normalize`"):
            parse_bounds([wrong])


def test_every_format_has_the_same_numbers(runs, found, capsys):
    def printed(*arguments):
        assert cli.main(["compare", *map(str, runs), *arguments]) == 0
        return capsys.readouterr().out

    assert json.loads(printed("--json")) == json.loads(printed("--format", "json"))
    lines = json.loads(printed("--json"))["lines"]
    rows = list(csv.DictReader(io.StringIO(printed("--format", "csv"))))
    for line, row in zip(lines, rows, strict=True):
        assert float(row["return_iqm"]) == line["return_iqm"]
        assert int(row["runs"]) == len(line["runs"])
    assert [row["option_sigma"] for row in rows] == ["0.1", "0.5", "0.1"]
    mean = number(lines[1]["return_mean"])
    assert f"| ars, sigma=0.5 | 2 | {mean} |" in printed("--format", "markdown")


def test_comparisons_have_html_tables_and_pictures(runs, found, tmp_path, monkeypatch):
    page = found._repr_html_()
    assert page.count("<table>") == 3
    assert "ars, sigma=0.1" in page
    drawn = escalade.plot(runs, tmp_path / "c.png")
    assert drawn._repr_png_() == (tmp_path / "c.png").read_bytes()
    assert escalade.plot(runs, tmp_path / "c.svg")._repr_png_() is None

    class Pandas:
        DataFrame = staticmethod(lambda columns: columns)

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    assert found.to_pandas()["return_iqm"] == [line.return_iqm for line in found.lines]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        found.to_pandas()


def test_runs_of_evolve_are_plotted_over_member_evaluations(tmp_path):
    for seed in (1, 2):
        options = {"population": 4, "generations": 2, "eval_every": 1, "workers": 0, "verbose": False}
        options |= {"seed": seed, "run_dir": tmp_path / "runs" / f"seed{seed}"}
        escalade.evolve(torch.nn.Linear(2, 1), lambda module: -module.weight.norm().item(), **options)
    assert escalade.plot([tmp_path / "runs"], tmp_path / "c.svg").left_out == ()
    assert "evaluations of members" in (tmp_path / "c.svg").read_text()
    (line,) = escalade.compare([tmp_path / "runs"]).lines
    assert (line.env, line.label, len(line.runs)) == ("Linear", "openai-es", 2)
    assert (line.seeds, line.env_steps, line.ended, line.eval_episodes) == ((1, 2), None, 2, 2)


def test_an_optimum_is_shown_as_a_table():
    found = escalade.optimize(lambda x: ((x - 3) ** 2).sum(), torch.zeros(20), budget=60)
    page = found._repr_html_()
    assert "optimum of 20 parameters" in page
    assert f">{plain(found.best_fitness)}<" in page
    assert ", ..." in page


def test_a_run_whose_last_evaluation_is_nan_is_excluded_from_means_and_named(runs, tmp_path):
    for run in runs[:2]:
        shutil.copytree(run, tmp_path / run.name)
    summary = tmp_path / runs[1].name / "summary.json"
    diverged = dict.fromkeys(("eval_return_mean", "eval_return_std"))
    summary.write_text(json.dumps(json.loads(summary.read_text()) | diverged))
    (line,) = escalade.compare(tmp_path).lines
    (other,) = escalade.compare(tmp_path / runs[0].name).lines
    assert (len(line.runs), line.ended) == (2, 2)
    assert line.return_mean == other.return_mean
    assert line.without_return == (str(tmp_path / runs[1].name),)
    scored = escalade.compare(tmp_path, normalize={"CartPole-v1": (0, 10)})
    assert f"the last evaluation of {tmp_path / runs[1].name} is not a number" in scored._repr_html_()
    (method,) = scored.scores.methods
    assert method.runs == 2
    assert method.score.value == pytest.approx(other.return_mean / 10 / 2)  # a run that diverged scores 0


def test_runs_with_the_same_seed_are_named(tmp_path):
    options = {"preset": None, "population": 4, "workers": 0, "verbose": False, "seed": 3}
    for generations in (1, 2):
        run_dir = tmp_path / str(generations)
        escalade.train("CartPole-v1", generations=generations, run_dir=run_dir, **options)
    message = "ars: 2 runs have seed 3; with the same options they are copies of one run"
    assert message in escalade.compare(tmp_path).to_markdown()
    assert "runs have seed 3" not in escalade.compare(tmp_path / "1").to_markdown()


def test_shortened_names_remain_distinct_in_a_narrow_terminal(found, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = str(found)
    assert repr(found) == shown
    assert all(line.label in shown for line in found.lines)
    assert "…" not in shown
