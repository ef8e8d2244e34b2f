"""A run that a bonus for survival holds is told so; one that must survive, or gets on, is not."""

import numpy as np

from escalade.training.hints import SurvivalHint

LENGTHS = np.array([10, 40, 25, 60, 33, 80])
OTHER = np.array([1.0, -1.5, 0.5, 2.0, -1.0, 0.3])


def looks(returns, lengths=LENGTHS, evaluations=None, lasts=100, limit=100):
    hint, said = SurvivalHint(limit), []
    for evaluation in evaluations or [50.0] * 30:
        if evaluation is not None:
            hint.evaluated(evaluation, lasts)
        said.append(hint.look(returns, lengths))
    return said


def test_returns_that_follow_lengths_are_noticed_after_a_while():
    said = looks(1.07 * LENGTHS + OTHER)
    assert said[:19] == [None] * 19
    assert "`reward=shift=1.1`" in said[19]


def test_nothing_is_said_where_to_survive_is_the_task():
    assert not any(looks(1.0 * LENGTHS))
    assert not any(looks(-1.0 * LENGTHS + OTHER))  # to be quick


def test_nothing_is_said_while_the_policy_does_not_last():
    assert not any(looks(1.07 * LENGTHS + OTHER, lasts=60))
    assert not any(looks(1.07 * LENGTHS + OTHER, limit=None))


def test_nothing_is_said_where_returns_are_about_something_else():
    assert not any(looks(0.02 * LENGTHS + OTHER))
    assert not any(looks(1.0 * LENGTHS + OTHER, np.full(6, 50)))
    assert not any(looks(np.full(6, np.nan)))


def test_nothing_is_said_while_evaluations_get_better():
    better = [100 * 1.1**generation if generation % 5 == 0 else None for generation in range(60)]
    assert not any(looks(1.07 * LENGTHS + OTHER, evaluations=better))
    still = [100.0 if generation % 5 == 0 else None for generation in range(60)]
    assert any(looks(1.07 * LENGTHS + OTHER, evaluations=still))
