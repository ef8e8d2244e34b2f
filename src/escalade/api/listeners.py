"""The listeners of a run, and what an interrupt does to its caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from escalade.recorders import Recorder
from escalade.support.registry import check_named
from escalade.training.session import check_listeners
from escalade.training.view import Callback

OnInterrupt = Literal["raise", "return"]


@dataclass(frozen=True)
class Listeners:
    """The listeners of a run; see :func:`train`."""

    verbose: bool = True
    recorders: Sequence[Recorder | str] = ()
    callbacks: Sequence[Callback] = ()
    on_interrupt: OnInterrupt = "return"

    def __post_init__(self) -> None:
        check_listeners(self.recorders, self.callbacks)
        check_named("on_interrupt", self.on_interrupt, get_args(OnInterrupt))
