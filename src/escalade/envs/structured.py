"""Dict and Tuple spaces: structured actions, and observations without their text parts.

The outputs for all parts of an action are one row. A policy reads all parts but text; if the only one left is
an image, it reads that image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray

from escalade.envs.spaces import is_image, is_structured, leaves_of, parts_of
from escalade.errors import InputError

Array = NDArray[Any]
Env = gymnasium.Env[Any, Any]


def split(space: spaces.Space[Any], bounding: str, head: str) -> list[tuple[spaces.Space[Any], str, str]]:
    """Return the innermost parts of a Dict or Tuple, each with its action map and head, in order of outputs.

    A ``head`` with bins applies to the Boxes, the head ``sample`` to the other parts.

    Raises:
        InputError: ``bounding`` has an entry for each dimension, or the head applies to no part.
    """
    if not is_structured(space):
        return []
    if "," in bounding:
        raise InputError(
            f"`action_map` {bounding} has several entries: use a single one with a Dict or Tuple"
        )
    leaves = leaves_of(space)
    boxes = [isinstance(leaf, spaces.Box) for leaf in leaves]
    if head not in ("auto", "plain", "sample") and not any(boxes):
        raise InputError(f"head {head!r} needs a Box in the action space; use `head=plain`")
    if head == "sample" and all(boxes):
        raise InputError("head 'sample' needs a discrete part in the action space; use `head=plain`")
    drawn = head in ("auto", "sample")
    of_box, of_choice = ("plain", "sample") if drawn else (head, "plain")
    return [(leaf, bounding, of_box if box else of_choice) for leaf, box in zip(leaves, boxes, strict=True)]


def assembled(
    space: spaces.Space[Any],
    maps: Sequence[tuple[spaces.Space[Any], Callable[[Array], Array]]],
    ends: Array,
    raw: Array,
) -> Array:
    """Map raw outputs (k, outputs) to k actions in an array of objects; see :meth:`ActionMap.compile`.

    Args:
        space: the action space, a Dict or Tuple.
        maps: the innermost parts, each with a function from its outputs to its actions.
        ends: end of the outputs of each part but the last.
        raw: the outputs.
    """
    own = np.split(raw, ends, axis=1)
    columns = [_rows(leaf, part(outputs)) for (leaf, part), outputs in zip(maps, own, strict=True)]
    return as_array([_assembled(space, iter(row)) for row in zip(*columns, strict=True)])


def _rows(leaf: spaces.Space[Any], column: Array) -> list[Any]:
    """Return the actions of one part: Python integers for a Discrete space, otherwise arrays."""
    return column.tolist() if isinstance(leaf, spaces.Discrete) else [np.asarray(row) for row in column]


def _assembled(space: spaces.Space[Any], values: Iterator[Any]) -> Any:
    """Return the structure of ``space`` with the next of ``values`` for each innermost part."""
    if isinstance(space, spaces.Dict):
        return {key: _assembled(part, values) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_assembled(part, values) for part in space)
    return next(values)


def as_array(actions: Sequence[Any]) -> Array:
    """Return actions as an array with the batch first, an array of objects for Dict and Tuple spaces."""
    if not isinstance(actions[0], dict | tuple):
        return np.array(actions)
    found = np.empty(len(actions), object)
    for row, action in enumerate(actions):
        found[row] = action
    return found


def as_batch_of_parts(space: spaces.Space[Any], actions: Array) -> Any:
    """Return a single structure whose parts have the batch first, as vector environments expect it."""
    room: Any = create_empty_array(space, len(actions))
    return concatenate(space, actions, room)


class Readable(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Drops the text parts of a Dict or Tuple. A single image that is left is returned without its Dict."""

    def __init__(self, env: Env, read: spaces.Space[Any], dropped: list[str]) -> None:
        super().__init__(env)
        self._parts, self.text_parts = read, tuple(dropped)
        first, *others = leaves_of(read)
        self.observation_space = first if is_image(first) and not others else read

    def observation(self, observation: Any) -> Any:
        """Return the observation as the policy reads it."""
        seen = _read(self._parts, observation)
        while is_image(self.observation_space) and isinstance(seen, dict):
            (seen,) = seen.values()
        return seen


def readable(env: Env) -> Env:
    """Return the environment with observations that a policy can read, or ``env`` itself if they are.

    A Tuple with text becomes a Dict with the positions of its other parts as keys.
    """
    dropped = list[str]()
    read = _without_text(env.observation_space, "", dropped)
    made = env if read is None else Readable(env, read, dropped)
    return made if dropped or made.observation_space is not read else env


def _without_text(space: spaces.Space[Any], name: str, dropped: list[str]) -> spaces.Space[Any] | None:
    """Return the space without text, or None if it is all text. Adds the names of text to ``dropped``."""
    if is_structured(space):
        parts = [(key, _without_text(part, f"{name}{key}.", dropped)) for key, part in parts_of(space)]
        others = [(key, part) for key, part in parts if part is not None]
        return spaces.Dict(others) if others else None
    # A dtype check, because MiniGrid has its own class for text.
    if space.dtype is None or space.dtype.kind != "U":
        return space
    dropped.append(name[:-1])
    return None


def _read(space: spaces.Space[Any], observation: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _read(part, observation[key]) for key, part in space.items()}
    return observation
