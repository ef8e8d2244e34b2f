"""The file of a sweep: parsing, and refusals."""

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from escalade import InputError
from escalade.wings.many_runs.sweep_plan import read_sweep

WHOLE = """
trials = 9
seeds = [1, 2]
[options]
env = "CartPole-v1"
generations = 5
[space]
sigma = {low = 0.01, high = 1, log = true}
population = {low = 8, high = 64, step = 8}
hidden = [[16], [64, 64]]
strategy = ["openai-es", "pgpe"]
[pruning]
warmup = 0.5
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "s.toml").write_text(text)
        return tmp_path / "s.toml"

    return write


def test_a_sweep_file_is_parsed(written):
    plan = read_sweep(written(WHOLE), trials=3)
    assert (plan.trials, plan.seeds, plan.sampler, plan.warmup) == (3, (1, 2), "tpe", 0.5)
    assert plan.space["sigma"] == FloatDistribution(0.01, 1.0, log=True)
    assert plan.space["population"] == IntDistribution(8, 64, step=8)
    assert plan.space["hidden"] == CategoricalDistribution(["16", "64,64"])
    config = plan.config({"sigma": 0.2, "population": 16, "hidden": "16", "strategy": "pgpe"})
    assert (config.sigma, config.hidden, config.strategy, config.generations) == (0.2, (16,), "pgpe", 5)


def test_lists_of_wrappers_stay_lists_in_a_trial(written):
    clip, scale = "gymnasium.wrappers:ClipReward(-1, 1)", "gymnasium.wrappers:RescaleAction(-1, 1)"
    text = 'trials = 2\n[options]\nenv = "Pendulum-v1"\ngenerations = 2\n[space]\n'
    plan = read_sweep(written(f'{text}wrappers = [[], ["{clip}"], ["{clip}", "{scale}"]]\n'))
    chosen = [plan.config({"wrappers": choice}).wrappers for choice in plan.space["wrappers"].choices]
    assert chosen == [(), (clip,), (clip, scale)]


WRONG = {
    'trials = "many"': "trials 'many' is not valid; use a whole number",
    "trials = 0": "trials must be a whole number of at least 1",
    "trials = 2\nspeed = 3": "unknown entry 'speed'; did you mean seeds",
    "trials = 2": r"\[options\] must contain env",
    'trials = 2\n[options]\nenv = "CartPole-v1"': r"\[space\] is empty",
}
SPACES = {
    "sgma = [1, 2]": "sgma is not an option that can be searched; did you mean sigma",
    "generations = [1, 2]": "generations is not an option that can be searched",
    "sigma = [1, 1]": "at least two different values",
    "sigma = 3": "a list of values, or a range",
    "sigma = {low = 2, high = 1}": r"`low <= high` must hold",
    "population = {low = 8, high = 64, step = 2.5}": "`population`",
    "sigma = {low = 1, high = 2, lg = true}": "unknown entry 'lg'; did you mean log",
    "bias = {low = 0, high = 1}": "`bias`",
}


@pytest.mark.parametrize("space", SPACES)
def test_a_space_that_cannot_be_searched_is_refused(space, written):
    text = f'trials = 2\n[options]\nenv = "CartPole-v1"\ngenerations = 2\n[space]\n{space}\n'
    with pytest.raises(InputError, match=SPACES[space]):
        read_sweep(written(text))


@pytest.mark.parametrize("text", WRONG)
def test_an_incomplete_sweep_file_is_refused(text, written):
    with pytest.raises(InputError, match=rf"s\.toml: {WRONG[text]}"):
        read_sweep(written(text))


def test_a_trial_needs_a_budget_and_options_appear_in_one_table_only(written):
    env = 'trials = 2\npreset = "none"\n[options]\nenv = "CartPole-v1"\n'
    with pytest.raises(InputError, match="needs a budget; set one of generations, env_steps, seconds"):
        read_sweep(written(f"{env}[space]\nsigma = [1, 2]"))
    with pytest.raises(InputError, match=r"sigma is in both \[options\] and \[space\]"):
        read_sweep(written(f"{env}sigma = 1\ngenerations = 2\n[space]\nsigma = [1, 2]"))
    with pytest.raises(InputError, match=r"\[options\] seed is set by the sweep"):
        read_sweep(written(f"{env}seed = 1\n[space]\nsigma = [1, 2]"))
    with pytest.raises(InputError, match="pruner 'best' is not valid; use one of median, halving, none"):
        read_sweep(written(f'{env}generations = 2\n[space]\nsigma = [1, 2]\n[pruning]\npruner = "best"'))


def test_values_of_strategy_options_keep_their_types(written):
    head = 'trials = 2\n[options]\nenv = "CartPole-v1"\ngenerations = 2\nstrategy = "snes"\n[space]\n'
    plan = read_sweep(
        written(
            f"{head}strategy_options.mirrored = [true, false]\nsigma = [0.1, 0.2]\n"
            "strategy_options.fraction = {low = 0, high = 0.9, step = 0.1}"
        )
    )
    assert plan.space["fraction"] == FloatDistribution(0.0, 0.9, step=0.1)
    choices = plan.space["mirrored"].choices
    given = [plan.config({"mirrored": choice, "sigma": "0.1"}).strategy_options for choice in choices]
    assert given == [{"mirrored": True}, {"mirrored": False}]


def test_options_are_checked_only_together_with_searched_ones(written):
    """15 members are invalid for ars, the default, which no trial uses."""
    head = 'trials = 2\n[options]\nenv = "CartPole-v1"\npopulation = 15\ngenerations = 5\n'
    plan = read_sweep(written(f'{head}[space]\nstrategy = ["snes", "cem"]'))
    assert plan.config({"strategy": "cem"}).population == 15


def test_options_invalid_in_every_trial_are_refused_before_the_first(written):
    head = 'trials = 2\n[options]\nenv = "CartPole-v1"\nsigma = -1\ngenerations = 5\n'
    with pytest.raises(InputError, match="`sigma`"):
        read_sweep(written(f'{head}[space]\nstrategy = ["snes", "cem"]'))
