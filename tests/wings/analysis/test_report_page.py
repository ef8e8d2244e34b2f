"""A report is a single self-contained file that describes a run."""

import json
import shlex
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import escalade
from escalade import InputError
from escalade.api.train import train_config
from escalade.cli.main import main, make_parser
from escalade.cli.training import config_typed
from escalade.config.commands import train_command
from escalade.config.options import Config
from escalade.media.charts import Area, Chart, Line
from escalade.recorders import COLUMNS
from escalade.storage.run_folder import ZOO, RunFolder
from escalade.training.run import Listeners
from escalade.wings.analysis.facts import read_facts
from escalade.wings.analysis.report_page import chart_html
from escalade.wings.analysis.reported import Reported

OPTIONS = {"preset": None, "population": 4, "hidden": [4], "eval_every": 1, "max_episode_steps": 20}
OPTIONS |= {"target_return": 400.0}


class Page(HTMLParser):
    """Return the references of a page, the descriptions of its charts, and its text."""

    def __init__(self, text):
        super().__init__()
        self.references, self.open, self.text, self.charts = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.references += [given[name] for name in ("src", "href", "xlink:href", "poster") if name in given]
        self.open.append(tag)
        if given.get("class") == "plot":
            self.charts.append(given["alt"])

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    budgets = {"generations": 5, "workers": 1}, {"seconds": 0.3, "workers": 0, "lr": 0.02}
    for seed, budget in enumerate(budgets):
        own = {"seed": seed, "run_dir": folder / f"seed{seed}", "verbose": False}
        escalade.train("CartPole-v1", **OPTIONS, **budget, **own)
    return folder


@pytest.fixture(scope="module")
def page(runs):
    escalade.render(runs / "seed0", runs / "seed0" / "video.gif", max_steps=4)
    assert (
        main(["report", *(str(runs / f"seed{seed}") for seed in (0, 1)), "--output", str(runs / "a.html")])
        == 0
    )
    return runs / "a.html"


def test_the_page_has_no_external_references(page):
    found = Page(page.read_text())
    assert found.references
    assert all(reference.startswith("data:") for reference in found.references)
    assert "script" not in found.open
    assert "url(http" not in page.read_text()
    assert "@import" not in page.read_text()
    assert len(found.charts) >= 12
    assert all("from " in words for words in found.charts)


def test_the_page_lists_the_runs_and_their_differences(page, runs):
    text = " ".join(Page(page.read_text()).text)
    for words in ("CartPole-v1", "Return of evaluations", "Rank of the unperturbed policy", "Sigma"):
        assert words in text
    for words in ("Update ratio", "quantiles", "Idle share", "Differences", "torch"):
        assert words in text
    assert "target 400" in page.read_text()
    summary = json.loads((runs / "seed1" / "summary.json").read_text())
    # The clock ended it: reproducing it needs the number of generations.
    assert f"--generations {summary['generations']}" in text


def test_the_last_command_of_the_page_reproduces_the_run(runs):
    folder = RunFolder(runs / "seed1")
    summary = folder.read_summary()
    _, again = Reported(read_facts(folder), "seed1").commands()[-1]
    parsed = make_parser().parse_args([*again.split()[1:], "--run-dir", str(runs / "again")])
    rerun = train_config(config_typed(parsed), Listeners(verbose=False))
    assert rerun.summary["params_sha256"] == summary["params_sha256"]
    assert rerun.summary["generations"] == summary["generations"]


@pytest.mark.parametrize(
    "options",
    [
        {"env_kwargs": {"a": "it's", "b": [1, None]}, "wrappers": ("a.b:C(1, 'x y')", "d:E"), "seed": 9},
        {"early_end": (3, 2), "target_return": -1.5, "crop": (0, 10), "bias": False, "reward": "floor=-2.5"},
        {"sigma": "linear:0.1:0.02:300", "observation_clip": "none", "normalize_observations": True},
        {"strategy": "openai-es", "population": "linear:16:64:64"},
        {"start_from": "zoo:CartPole-v1", "policy": "linear", "hidden": (), "normalize_observations": True},
        {"engine": "ray", "worker_resources": {"CPU": 2}, "hidden": (3, 5), "seconds": 2.5, "workers": 0},
    ],
)
def test_a_printed_command_parses_to_the_same_config(options):
    config = Config(env="CartPole-v1", **options)
    words = shlex.split(train_command(config))
    assert words[:3] == ["escalade", "train", "CartPole-v1"]
    assert config_typed(make_parser().parse_args(words[1:])) == config
    # Written as "none", because the run it starts from may skip frames.
    assert ("--frame-skip" in words) == (config.start_from is not None)


def test_names_of_runs_are_escaped(runs, tmp_path):
    folder = tmp_path / "<script>alert(1)</script>&"
    folder.mkdir(parents=True)
    for name in ("config.toml", "progress.csv"):
        (folder / name).write_bytes((runs / "seed0" / name).read_bytes())
    output = escalade.report([folder, runs / "seed0"], tmp_path / "page.html", x="generations")
    found = Page(output.read_text())
    assert "script" not in found.open
    text = " ".join(found.text)
    assert "the run has not ended" in text


def test_a_report_contains_a_run_of_evolve_and_a_film(tmp_path):
    def fitness(module):
        return -float(sum(parameter.square().sum() for parameter in module.parameters()))

    module = torch.nn.Linear(2, 1)
    how = {"generations": 3, "population": 4, "sigma": 0.1, "verbose": False}
    escalade.evolve(module, fitness, run_dir=tmp_path / "run", **how)
    output = escalade.report(tmp_path / "run", tmp_path / "page.html")
    assert "escalade.evolve" in output.read_text()
    assert "evaluations of members" in output.read_text()


# imageio leaves closing the pipes of the counted film to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_best_policy_is_filmed_on_request(runs, tmp_path):
    words = ("report", runs / "seed1", "--video", "--x", "seconds", "--output", tmp_path / "x.html")
    assert main([*map(str, words)]) == 0
    assert "data:video/mp4;base64," in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["seed0", "--output", "x.pdf"], "--output x.pdf must end in .html"),
        (["seed0", "--x", "days"], "--x 'days' must be one of steps, seconds, generations"),
    ],
)
def test_a_mistake_is_reported_in_one_line(arguments, message, runs, monkeypatch, capsys):
    monkeypatch.chdir(runs)
    assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(InputError, match="no runs to read"):
        escalade.report([])


def test_a_chart_has_a_text_description_and_is_deterministic():
    at = np.arange(100.0)
    line = Line("<evaluation>", at, np.where(at == 50, -2.5e9, at), 3)
    chart = Chart("Return & more", "steps", [line], [Area("band", at, at - 1, at + 1, 9)], 9e3)
    text = chart_html(chart)
    assert "&lt;evaluation&gt;: from 0 to 99, lowest -2,500,000,000, highest 99; band; target 9,000" in text
    assert "Return &amp; more" in text
    assert text == chart_html(chart)
    assert 'class="plot"' in chart_html(Chart("none", "steps", [Line("a", at[:1], at[:1])]))


def test_a_run_without_rows_is_reported_without_tables(runs, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_bytes((runs / "seed0" / "config.toml").read_bytes())
    (run / "progress.csv").write_text(",".join(COLUMNS) + "\n")
    text = escalade.report(run, tmp_path / "page.html", x="episodes").read_text()
    assert "the run has not ended" in text
    assert "Over evaluations of members." in text


def test_a_report_of_a_novelty_search_shows_archive_and_shortened_episodes(tmp_path):
    search = {"behavior": "observation:0,1", "novelty": "ns", "strategy": "openai-es", "cutoff": 5}
    own = {"run_dir": tmp_path / "run", "verbose": False, "workers": 0, "generations": 2}
    ran = escalade.train("CartPole-v1", **OPTIONS | search | own)
    text = escalade.report(ran, tmp_path / "page.html").read_text()
    assert "Behaviors in the archive" in text
    assert "population mean, episodes cut short" in text
    assert text.count("members are cut short") == 1


def test_a_report_without_matplotlib_is_refused_in_one_line(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("escalade.support.imports.missing", lambda *packages: list(packages))
    assert main(["report", str(runs / "seed0"), "--output", str(tmp_path / "x.html")]) == 2
    assert "a report needs matplotlib; install the extra 'plot' of escalade" in capsys.readouterr().err


def test_a_report_charts_the_spread_of_many_workers(runs, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for name in ("config.toml", "progress.csv"):
        (run / name).write_bytes((runs / "seed0" / name).read_bytes())
    lines = [f"{at},{worker},1.0,3.0,{40 + worker},0.25" for at in (1, 3, 5) for worker in range(1, 21)]
    heading = "generation,worker,seconds,items_per_second,env_steps_per_second,idle_share"
    (run / "workers.csv").write_text("\n".join([heading, *lines, ""]))
    text = escalade.report(run, tmp_path / "page.html").read_text()
    assert "median of workers: from 0.25 to 0.25" in text
    assert "median of workers: from 50.5 to 50.5" in text


def test_nothing_is_filmed_without_progress_to_report(tmp_path):
    with pytest.raises(InputError, match=r"has no progress\.csv"):
        escalade.report("zoo:CartPole-v1", output=tmp_path / "x.html", video=True)
    assert not (ZOO / "CartPole-v1" / "video.mp4").exists()


def test_a_report_of_several_configurations_starts_with_a_comparison(sigmas, tmp_path):
    text = escalade.report(sigmas, tmp_path / "r.html").read_text()
    found = escalade.compare(sigmas)
    first, _, rest = text.partition("</section>")
    assert "<h2>Comparison</h2>" in first
    assert rest.startswith("<section><h2>Result</h2>")
    for line in found.lines:
        assert f">{line.label}</td>" in first
        assert f"{line.label} (2 runs)" in first  # one curve each
    assert first.count("<figure") == 1
