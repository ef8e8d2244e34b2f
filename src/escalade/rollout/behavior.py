"""The option ``behavior``: numbers that characterize an episode, independent of its return."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from escalade.errors import InputError
from escalade.support.imports import imported

if TYPE_CHECKING:  # options are checked before Gymnasium is imported
    from escalade.envs import Environment

FORMS = (
    "info:KEY,..., observation:N,... or ram, each optionally with :every=STEPS; or package.module:function"
)
_TEXT = re.compile(r"(info|observation|ram)(?::(?!every=)(.*?))?(?::every=(\d{1,9}))?")


class Behavior(str):
    """A parsed behavior: numbers of an episode's last step or of every n-th, or a function's result.

    Examples are ``info:x_position,y_position``, ``observation:0,1:every=10``, ``ram`` and
    ``package.module:function``.

    Raises:
        InputError: The text has none of these forms.
    """

    kind: str
    """``info``, ``observation``, ``ram`` or ``function``."""
    keys: tuple[str, ...] = ()
    """Keys of a step's info."""
    places: tuple[int, ...] = ()
    """Indices into a flattened observation."""
    every: int | None = None
    """Steps between two recorded steps, or None if only the last step is recorded."""
    function: Callable[[Any], Any] | None = None
    """Function of a :class:`escalade.rollout.traces.Trajectory`, imported by :meth:`found`."""

    def __new__(cls, text: str) -> Behavior:
        made = super().__new__(cls, text)
        if match := _TEXT.fullmatch(made):
            made.kind, names, steps = match.groups()
            listed = () if names is None else tuple(name.strip() for name in names.split(","))
            made.every = None if steps is None else int(steps)
            valid = {"info": all(listed), "observation": all(map(_is_index, listed)), "ram": not listed}
            if valid[made.kind] and (made.kind == "ram" or listed) and made.every != 0:
                if made.kind == "observation":
                    made.places = tuple(map(int, listed))
                else:
                    made.keys = listed
                return made
        elif all(part.isidentifier() for part in re.split(r"[.:]", made)) and made.count(":") == 1:
            made.kind = "function"
            return made
        raise InputError(f"`behavior` {text!r} must be {FORMS}")

    def found(self, environment: Environment) -> Behavior:
        """Check the behavior against ``environment``, and import its function.

        Returns:
            A copy with ``function`` set if the behavior names one.

        Raises:
            InputError: The environment does not have this behavior, or the function does not exist.
        """
        from escalade.envs.pixels.wrappers import is_atari
        from escalade.envs.spaces import observation_shape

        size = math.prod(observation_shape(environment.observation_space))
        what = f"`behavior` {self}"
        if any(place >= size for place in self.places):
            raise InputError(f"{what}: observations of {environment.id} have the indices 0 to {size - 1}")
        if self.kind == "ram" and not is_atari(environment.spec):
            raise InputError(f"{what}: {environment.id} is not an Atari game of ALE, so it has no RAM")
        if self.every and environment.max_episode_steps is None:
            raise InputError(f"{what}: set `max_episode_steps` too, so that all behaviors have the same size")
        made = Behavior(self)
        made.function = imported(self, what) if self.kind == "function" else None
        return made


def check_sizes(sizes: set[int]) -> None:
    """Check that all behaviors have the same size.

    Raises:
        InputError: ``sizes`` has more than one element.
    """
    if len(sizes) > 1:
        several = " and ".join(map(str, sorted(sizes)))
        raise InputError(f"`behavior`: found behaviors of {several} numbers; all must have the same size")


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
