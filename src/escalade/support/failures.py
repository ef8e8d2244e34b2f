"""The share of episodes, or calls of fitness, that may fail where a failure does not end the run."""

from __future__ import annotations

from escalade.errors import EnvironmentFailure

_MOST = 0.1


def check_failures(failed: int, of: int, what: str, first: str, forgives: str, *, least: int = 0) -> None:
    """Refuse more failures than count as the worst of the others: a tenth.

    Args:
        failed: how many failed, or gave no usable number.
        of: how many there were.
        what: their name, in the plural.
        first: words for the first of them.
        forgives: the option by which they may fail.
        least: failures that are allowed in any case.

    Raises:
        EnvironmentFailure: there are more.
    """
    if failed > max(least, _MOST * of):
        raise EnvironmentFailure(
            f"{failed} of {of} {what} failed, or gave no usable number (the first: {first}): with "
            f"`{forgives}` no more than a tenth counts as the worst"
        )


def words_of(raised: str | None) -> str:
    """Say how an episode failed that ``raised`` this, in words, or nothing."""
    return "its return is no number" if raised is None else f"it raised {raised}"
