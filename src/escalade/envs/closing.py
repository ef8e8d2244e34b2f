"""Closing an environment, whose own code may fail there too."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from escalade.errors import one_line, shortened
from escalade.support.output import visible

if TYPE_CHECKING:
    import gymnasium

# Python remembers too what it has warned of, until somebody changes its filters: Gymnasium does.
_said: set[str] = set()


def close(env: gymnasium.Env[Any, Any]) -> None:
    """Close the environment. What it raises is a warning, once a process: its episodes are done, and count.

    The caller has the results by then, or raises an error of its own.
    """
    try:
        env.close()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # noqa: BLE001 - the environment's own code, panics of Rust among it
        text = visible(shortened(one_line(problem)))
        name = type(getattr(env, "unwrapped", env)).__name__
        text = f"{name}.close() raised {text} (its episodes count all the same)"
        if text not in _said:
            _said.add(text)
            at = traceback.extract_tb(problem.__traceback__)[-1]
            warnings.warn_explicit(text, RuntimeWarning, at.filename, at.lineno or 0)


@contextmanager
def closed_on_error(env: gymnasium.Env[Any, Any]) -> Iterator[None]:
    """Close the environment where the block raises."""
    try:
        yield
    except BaseException:
        close(env)
        raise
