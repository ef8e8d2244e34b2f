"""Groups of runs and their labels."""

from torch import nn

import escalade
from escalade.config.options import Config
from escalade.wings.analysis.groups import find_runs, group_runs
from escalade.wings.many_runs.series import series_folder

SMALL = {"preset": None, "policy": "linear", "population": 12, "workers": 0, "generations": 1}
SMALL |= {"eval_episodes": 1, "verbose": False, "backend": "gymnasium"}


def labels(tmp_path, *configurations, **grouping):
    folders = []
    for number, options in enumerate(configurations):
        folders.append(tmp_path / str(number))
        escalade.train("CartPole-v1", run_dir=folders[-1], **SMALL | options)
    return [group.label for group in group_runs(folders, **grouping)]


def test_a_label_omits_options_that_the_strategy_lacks(tmp_path):
    runs = (
        {"strategy": "cma-es", "sigma": 0.5},
        {"strategy": "openai-es:optimizer=sgd", "sigma": 0.1, "lr": 0.01},
        {"strategy": "ars", "sigma": 0.1, "lr": 0.02},
    )
    ours = labels(tmp_path / "a", *runs)
    assert ours == [
        "cma-es, sigma=0.5",
        "openai-es, sigma=0.1, lr=0.01, optimizer=sgd",
        "ars, sigma=0.1, lr=0.02",
    ]
    assert labels(tmp_path / "b", *runs, group_by=["strategy", "lr"]) == [
        "strategy=cma-es",
        "strategy=openai-es, lr=0.01",
        "strategy=ars, lr=0.02",
    ]
    assert labels(tmp_path / "c", runs[0], group_by="lr") == ["lr=default"]
    assert labels(tmp_path / "d", *runs[:2], group_by=["optimizer"]) == ["optimizer=default", "optimizer=sgd"]


def test_labels_are_rounded_and_duplicates_are_numbered(tmp_path):
    sigmas = (0.1 + 0.2, 0.012345678, 0.012345679)
    assert labels(tmp_path, *({"sigma": sigma} for sigma in sigmas)) == [
        "ars, sigma=0.3",
        "ars, sigma=0.01235",
        "ars, sigma=0.01235 (3)",
    ]


def test_reevaluated_runs_belong_to_the_same_configuration(tmp_path):
    options = {"max_episode_steps": 5, "run_dir": tmp_path}
    escalade.train("CartPole-v1", seeds=range(2), **SMALL | options)
    escalade.resume(tmp_path / "seed1", eval_episodes=3, eval_every=2, verbose=False)
    (group,) = group_runs(tmp_path)
    assert len(group.runs) == 2
    (line,) = escalade.compare(tmp_path).lines
    assert line.eval_episodes == 1 + 3
    again = SMALL | options | {"eval_episodes": 4}  # finished runs are evaluated again, not trained
    runs = escalade.train("CartPole-v1", seeds=range(2), **again)
    assert [(run.summary["eval_episodes"], run.summary["generations"]) for run in runs] == [(4, 1)] * 2


def test_shell_globs_may_match_runs_and_files_inside_them(tmp_path):
    for name in ("one", "series/two"):
        escalade.train("CartPole-v1", run_dir=tmp_path / name, **SMALL)
    named = sorted(tmp_path.glob("*/*"))
    assert {"checkpoints", "policy.safetensors", "two"} <= {path.name for path in named}
    assert [folder.path.name for folder in find_runs(named)] == ["two"]
    assert [folder.path.name for folder in find_runs([*named, tmp_path / "one"])] == ["two", "one"]


def test_strategies_and_module_sizes_are_groups_of_one_task(tmp_path):
    for size, strategy in [(2, "openai-es"), (3, "openai-es"), (2, "snes")]:
        folder = tmp_path / f"{strategy}-{size}"
        options = {"population": 4, "generations": 1, "strategy": strategy, "run_dir": folder}
        escalade.evolve(nn.Linear(size, 1), lambda module: float(module.weight.sum()), **options)
    groups = group_runs(tmp_path)
    assert {group.task for group in groups} == {"Linear"}
    sizes = ["openai-es, parameters=3", "openai-es, parameters=4", "snes, parameters=3"]
    assert sorted(group.label for group in groups) == sizes


def test_custom_networks_are_distinguished_by_their_parameters(tmp_path):
    options = {name: value for name, value in SMALL.items() if name != "policy"}
    for size in (2, 3):
        network = nn.Sequential(nn.Linear(4, size), nn.Linear(size, 2))
        escalade.train("CartPole-v1", network=network, run_dir=tmp_path / str(size), **options)
    escalade.train("CartPole-v1", policy="linear", run_dir=tmp_path / "line", **options)
    labels = [group.label.partition(", ")[2] for group in group_runs(tmp_path)]
    assert [label.partition("parameters=")[2] for label in labels] == ["16", "23", ""]


def test_the_order_of_keys_does_not_distinguish_runs(tmp_path):
    strategies = ("openai-es:optimizer=sgd,momentum=0.5", "openai-es:momentum=0.5,optimizer=sgd")
    runs = [{"strategy": each, "lr": 0.1, "seed": seed} for seed, each in enumerate(strategies)]
    assert len(labels(tmp_path, *runs)) == 1
    nested = ({"a": {"c": 1, "d": 2}, "b": 2}, {"b": 2, "a": {"d": 2, "c": 1}})
    configs = [Config(env="any", env_kwargs=each) for each in nested]
    assert len({series_folder({"config": config}, None) for config in configs}) == 1
