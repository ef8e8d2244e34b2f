"""A behaviour, as it is asked for: numbers that say how an episode went, not how well."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from escalade.errors import InputError
from escalade.support.imports import imported

if TYPE_CHECKING:  # the options are checked before Gymnasium is wanted
    from escalade.envs import Environment

FORMS = "info:KEY,..., observation:N,..., ram, each of them with :every=STEPS too, or package.module:function"
_TEXT = re.compile(r"(info|observation|ram)(?::(?!every=)(.*?))?(?::every=(\d{1,9}))?")


class Behaviour(str):
    """The text of a behaviour, read: numbers of an episode's last step, or of every n-th; or a function's.

    It is ``info:x_position,y_position``, ``observation:0,1:every=10``, ``ram`` or a function's name.

    Raises:
        InputError: it is none of these.
    """

    kind: str
    """``info``, ``observation``, ``ram`` or ``function``."""
    keys: tuple[str, ...] = ()
    """Entries of a step's info."""
    places: tuple[int, ...] = ()
    """Places of numbers in a flattened observation."""
    every: int | None = None
    """Steps between two that are noted; None notes the last alone."""
    function: Callable[[Any], Any] | None = None
    """It is given a :class:`escalade.rollout.traces.Trajectory`; known once :meth:`found`."""

    def __new__(cls, text: str) -> Behaviour:
        made = super().__new__(cls, text)
        if match := _TEXT.fullmatch(made):
            made.kind, names, steps = match.groups()
            listed = () if names is None else tuple(name.strip() for name in names.split(","))
            made.every = None if steps is None else int(steps)
            right = {"info": all(listed), "observation": all(map(_is_place, listed)), "ram": not listed}
            if right[made.kind] and (made.kind == "ram" or listed) and made.every != 0:
                if made.kind == "observation":
                    made.places = tuple(map(int, listed))
                else:
                    made.keys = listed
                return made
        elif all(part.isidentifier() for part in re.split(r"[.:]", made)) and made.count(":") == 1:
            made.kind = "function"
            return made
        raise InputError(f"`behaviour` {text!r} must be {FORMS}")

    def found(self, environment: Environment) -> Behaviour:
        """The same for ``environment``, with the function that it names.

        Raises:
            InputError: the environment has no such behaviour, or the function is not there.
        """
        from escalade.envs.pixels.wrappers import is_atari
        from escalade.envs.spaces import observation_shape

        size = math.prod(observation_shape(environment.observation_space))
        what = f"`behaviour` {self}"
        if any(place >= size for place in self.places):
            raise InputError(f"{what}: an observation of {environment.id} has the numbers 0 to {size - 1}")
        if self.kind == "ram" and not is_atari(environment.spec):
            raise InputError(f"{what}: {environment.id} is no Atari game of ALE's, and has no RAM")
        if self.every and environment.max_episode_steps is None:
            raise InputError(f"{what}: give `max_episode_steps` too: all behaviours must be of one length")
        made = Behaviour(self)
        made.function = imported(self, what) if self.kind == "function" else None
        return made


def check_sizes(sizes: set[int]) -> None:
    """Refuse behaviours of several lengths.

    Raises:
        InputError: ``sizes`` are several.
    """
    if len(sizes) > 1:
        several = " and ".join(map(str, sorted(sizes)))
        raise InputError(f"`behaviour`: there are behaviours of {several} numbers, and all must have as many")


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
