"""The survival hint appears if a survival bonus stalls a run, not if survival is the task or it improves."""

import numpy as np

from escalade.training.hints import SurvivalHint

LENGTHS = np.array([10, 40, 25, 60, 33, 80])
OTHER = np.array([1.0, -1.5, 0.5, 2.0, -1.0, 0.3])


def hints_of(returns, lengths=LENGTHS, evaluations=None, lasts=100, limit=100):
    hint, said = SurvivalHint(limit), []
    for evaluation in evaluations or [50.0] * 30:
        if evaluation is not None:
            hint.evaluated(evaluation, lasts)
        said.append(hint.look(returns, lengths))
    return said


def test_hint_appears_if_returns_follow_lengths_for_a_while():
    said = hints_of(1.07 * LENGTHS + OTHER)
    assert said[:19] == [None] * 19
    assert "`reward=shift=1.1`" in said[19]


def test_no_hint_if_survival_is_the_task():
    assert not any(hints_of(1.0 * LENGTHS))
    assert not any(hints_of(-1.0 * LENGTHS + OTHER))  # the task is to finish quickly


def test_no_hint_while_episodes_end_early():
    assert not any(hints_of(1.07 * LENGTHS + OTHER, lasts=60))
    assert not any(hints_of(1.07 * LENGTHS + OTHER, limit=None))


def test_no_hint_if_returns_do_not_depend_on_lengths():
    assert not any(hints_of(0.02 * LENGTHS + OTHER))
    assert not any(hints_of(1.0 * LENGTHS + OTHER, np.full(6, 50)))
    assert not any(hints_of(np.full(6, np.nan)))


def test_no_hint_while_evaluations_improve():
    better = [100 * 1.1**generation if generation % 5 == 0 else None for generation in range(60)]
    assert not any(hints_of(1.07 * LENGTHS + OTHER, evaluations=better))
    still = [100.0 if generation % 5 == 0 else None for generation in range(60)]
    assert any(hints_of(1.07 * LENGTHS + OTHER, evaluations=still))
