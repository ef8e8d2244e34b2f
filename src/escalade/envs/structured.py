"""Dict and Tuple spaces: actions of their own structure, and the parts of an observation that a policy reads.

The outputs for all parts of an action are one row. Read is all but text, or the one image among the parts.
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

    A ``head`` of bins is that of its Boxes, and the head ``sample`` that of the other parts.

    Raises:
        InputError: ``bounding`` names single dimensions, or there is no part for the head.
    """
    if not is_structured(space):
        return []
    if "," in bounding:
        raise InputError(f"`action_map` {bounding} names dimensions: a Dict or Tuple has one map for all")
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
    """Raw outputs (k, outputs) to k actions, in an array of objects; see :meth:`ActionMap.compile`.

    Args:
        space: the action space, a Dict or Tuple.
        maps: its innermost parts, and what makes the actions of each.
        ends: where the outputs of each end, but for the last.
        raw: the outputs.
    """
    own = np.split(raw, ends, axis=1)
    columns = [_rows(leaf, part(outputs)) for (leaf, part), outputs in zip(maps, own, strict=True)]
    return as_array([_assembled(space, iter(row)) for row in zip(*columns, strict=True)])


def _rows(leaf: spaces.Space[Any], column: Array) -> list[Any]:
    """The actions of one part: of a Discrete space Python's own integers, else arrays."""
    return column.tolist() if isinstance(leaf, spaces.Discrete) else [np.asarray(row) for row in column]


def _assembled(space: spaces.Space[Any], values: Iterator[Any]) -> Any:
    """The structure of ``space`` with the next of ``values`` for each of its innermost parts."""
    if isinstance(space, spaces.Dict):
        return {key: _assembled(part, values) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_assembled(part, values) for part in space)
    return next(values)


def as_array(actions: Sequence[Any]) -> Array:
    """Return actions as an array with the batch first; those of Dict and Tuple spaces as its objects."""
    if not isinstance(actions[0], dict | tuple):
        return np.array(actions)
    found = np.empty(len(actions), object)
    for row, action in enumerate(actions):
        found[row] = action
    return found


def as_batch_of_parts(space: spaces.Space[Any], actions: Array) -> Any:
    """Return actions as one, whose parts have the batch first, as vector environments take it."""
    room: Any = create_empty_array(space, len(actions))
    return concatenate(space, actions, room)


class Readable(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Keeps some parts of a Dict or Tuple: an image that is alone as it is, others in Dicts."""

    def __init__(self, env: Env, kept: spaces.Space[Any], left_out: list[str]) -> None:
        super().__init__(env)
        self._kept, self.text_parts = kept, tuple(left_out)
        first, *others = leaves_of(kept)
        self.observation_space = first if is_image(first) and not others else kept

    def observation(self, observation: Any) -> Any:
        """Return the observation as the policy reads it."""
        seen = _read(self._kept, observation)
        while is_image(self.observation_space) and isinstance(seen, dict):
            (seen,) = seen.values()
        return seen


def readable(env: Env) -> Env:
    """Return the environment with observations that a policy can read: itself if they are so already.

    A Tuple with text becomes a Dict of the places of its other parts, which then keep their names.
    """
    left_out = list[str]()
    kept = _without_text(env.observation_space, "", left_out)
    made = env if kept is None else Readable(env, kept, left_out)
    return made if left_out or made.observation_space is not kept else env


def _without_text(space: spaces.Space[Any], name: str, left_out: list[str]) -> spaces.Space[Any] | None:
    """Return the space without its text, whose names go to ``left_out``; None if there is nothing else."""
    if is_structured(space):
        parts = [(key, _without_text(part, f"{name}{key}.", left_out)) for key, part in parts_of(space)]
        kept = [(key, part) for key, part in parts if part is not None]
        return spaces.Dict(kept) if kept else None
    if space.dtype is None or space.dtype.kind != "U":  # MiniGrid has a class of its own for text
        return space
    left_out.append(name[:-1])
    return None


def _read(kept: spaces.Space[Any], observation: Any) -> Any:
    if isinstance(kept, spaces.Dict):
        return {key: _read(part, observation[key]) for key, part in kept.items()}
    return observation
