"""The test of whether returns meet a target, however often a run has tried."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from escalade.strategies.shaping import usable
from escalade.support.numbers import number
from escalade.training.objective import Array, Evaluation

_HARDER = 3.0  # standard errors


def meets(returns: Array, target: float, direction: float = 1.0, tries: int = 1) -> bool:
    """True where the mean return reaches the target, by the standard errors that :func:`strictness` asks for.

    Differences to the target are what is added up: returns that equal it meet it, to the last bit.

    Args:
        returns: shape (episodes,).
        target: their mean must be at least this; at most, with a ``direction`` of -1.
        direction: 1 where larger returns are better, -1 where smaller ones are.
        tries: how often the run has asked for it to be confirmed, this time included.
    """
    if not usable(returns).all():  # an episode diverged
        return False
    with np.errstate(invalid="ignore"):
        beyond = direction * (returns - target)
        return bool(beyond.mean() >= strictness(tries) * beyond.std() / math.sqrt(len(beyond)))


def strictness(tries: int) -> float:
    """The standard errors by which the mean of a run's k-th confirmation must be beyond the target.

    0 for the first, which is the field's criterion. Where means of returns are near a normal distribution and
    the policy is no better than the target, later ones pass by luck with a chance of at most 1 / (2 k²) each,
    and all of them together with 0.33. Rare failures are another matter: docs/seeds.md.
    """
    return NormalDist().inv_cdf(1 - 0.5 / tries**2) if tries > 1 else 0.0


def clearly_harder(judged: Evaluation, target: float, direction: float = 1.0) -> float:
    """The target beyond which another is clearly harder than ``target``, which ``judged`` was to confirm.

    Three standard errors: a policy that is just as good as the easier target passes the harder one by luck
    with a chance of 0.001.
    """
    error = judged.std / math.sqrt(len(judged.returns))
    return target + direction * _HARDER * error if math.isfinite(error) else target


def with_failures(judged: Evaluation) -> str:
    """The words for a target that was met in episodes of which some failed; empty if none did."""
    if not judged.failed:
        return ""
    return (
        f"{judged.failed} of the {len(judged.returns)} episodes that confirm the target failed, and count as "
        "the worst of the others"
    )


def refutation(evaluation: Evaluation, judged: Evaluation, tries: int, *, missed: bool) -> str:
    """The words for an ``evaluation`` that ``judged``, confirmation ``tries`` of the run, has not confirmed.

    ``missed``: its mean misses the target; else it is not far enough beyond it.
    """
    found = f"{len(judged.returns)} fresh episodes give {number(judged.mean)}"
    if missed:
        return f"an evaluation of {number(evaluation.mean)} was luck: {found}"
    asked = strictness(tries)
    margin = number(asked * judged.std / math.sqrt(len(judged.returns)))
    return (
        f"{found}, which meets the target, but not by {margin}: so much ({asked:.2f} standard errors) is "
        f"asked of confirmation {tries} of a run, as one of many is luck"
    )
