"""The names of the ways in which numbers meet the bounds of a Box action."""

from __future__ import annotations

from typing import Final

BOUNDINGS: Final = ("auto", "clip", "rescale", "tanh", "sigmoid")
"""The names that :class:`escalade.envs.actions.ActionMap` takes."""
