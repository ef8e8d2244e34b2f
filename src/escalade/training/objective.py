"""The subject of a run: the one thing in which training a policy and evolving a module differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.storage.tensors import State, Tensors
from escalade.strategies import Strategy
from escalade.training.progress import Counts, Progress

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """Returns of the unperturbed policy's episodes, shape (n,), and their environment steps in all."""

    returns: Array
    env_steps: int = 0
    member_fitness: float | None = None
    """The unperturbed policy's fitness, were it a member; None where that is the mean return."""
    further: Counts = Counts()
    """The cost of other centres' episodes."""
    raised: str | None = None
    """The exception of one of its episodes that was forgiven, in words; None where there was none."""
    failed: int = 0
    """Episodes that failed, or gave no number."""

    @property
    def mean(self) -> float:
        """Mean return: that of equal returns is theirs, which rounding would miss."""
        return float(np.clip(self.returns.mean(), self.returns.min(), self.returns.max()))

    @property
    def std(self) -> float:
        """Standard deviation of the returns; NaN where one is not finite."""
        with np.errstate(invalid="ignore"):
            return float(self.returns.std())

    @property
    def fitness(self) -> float:
        """The unperturbed policy's fitness, were it a member: by the same score."""
        return self.mean if self.member_fitness is None else self.member_fitness

    @property
    def counts(self) -> Counts:
        """The cost of the evaluation."""
        own = Counts(eval_episodes=len(self.returns), eval_steps=self.env_steps, eval_failed=self.failed)
        return own + self.further


@dataclass(frozen=True)
class Outcome:
    """The results of a generation."""

    fitness: Array
    """Fitness of each member, shape (population,), in member order."""
    returns: Array
    """Returns of the members' episodes, shape (episodes,): several a member where it plays several."""
    scores: Array
    """The scores whose means are fitness, shape (episodes,): returns, but where rewards are transformed."""
    evaluation: Evaluation | None
    """Evaluation of the unperturbed policy; None in generations without one."""
    comparable: bool = True
    """True where the evaluation ranks among the members: not if its episodes outlast a cap on theirs."""
    told: Array | None = None
    """The numbers that the strategy is told instead of fitness, where novelty counts, shape (population,)."""
    env_steps: int | None = None
    """Environment steps of the members' episodes; None where there is no environment."""
    raised: NDArray[np.object_] | None = None
    """Exceptions of episodes that were forgiven, in words, shape (episodes,); None where there was none."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Suggestions that follow from the episodes, by kind; a run prints each kind once."""
    info: tuple[tuple[str, float | None], ...] = ()
    """See :attr:`escalade.recorders.Row.info`."""
    behaviours: NDArray[np.float32] | None = None
    """Mean behaviour of each member's episodes, shape (population, size); None where nobody asks for it."""
    further: Counts = Counts()
    """The cost of the centre's episodes beside those of the evaluation."""
    details: Any = None
    """The objective's own, for :meth:`Objective.learn`."""

    def gave(self, place: int) -> str:
        """Say how an episode ended: ``returned nan``, or ``raised`` and the words of an exception."""
        words = None if self.raised is None else self.raised[place]
        return f"returned {self.scores[place]}" if words is None else f"raised {words}"

    @property
    def counts(self) -> Counts:
        """The cost of the generation, but for seconds."""
        found = Counts(episodes=len(self.returns), env_steps=self.env_steps or 0) + self.further
        return found if self.evaluation is None else found + self.evaluation.counts


class Objective(Protocol):
    """Evaluates members and the centre, and keeps what it learns on the way.

    Everything it gives must be a function of the strategy's state, of its own :meth:`state` and of
    the run's seed. Then the same seed gives the same bits.
    """

    direction: float
    """1 where larger returns are better, -1 where smaller ones are."""
    subject: str
    """The thing that is trained, for messages: ``policy`` or ``module``."""
    unit: str
    """The source of returns, for messages: ``episodes``, or ``calls of fitness``."""
    counts_steps: bool
    """True where there are environment steps to count."""
    forgives: str | None
    """The option by which episodes that raise count as worst of their generation; None: they end the run."""
    tie_advice: str
    """Options that may tell members apart if all have the same fitness; may be empty."""

    def measure(self, strategy: Strategy, *, evaluate: bool) -> Outcome:
        """Evaluate the generation's members, and with ``evaluate`` the centre.

        Raises:
            EnvironmentFailure: the environment or the fitness function raised.
            KeyboardInterrupt: the run was interrupted; nothing has changed.
        """
        ...

    def confirm(self, strategy: Strategy, evaluation: Evaluation) -> Evaluation:
        """Judge anew a centre whose ``evaluation`` met the target: by luck, perhaps."""
        return evaluation

    def evaluate(self, strategy: Strategy) -> Evaluation:
        """Evaluate the centre as the run leaves it; of several, each, and leave the best one drawn."""
        ...

    def settle(self, strategy: Strategy) -> None:
        """Leave the best known centre drawn, of several."""
        return

    def learn(self, outcome: Outcome) -> None:
        """Learn what a generation showed besides fitness, after the strategy's ``tell``."""
        ...

    def reproducibility_notes(self) -> list[str]:
        """Warnings to the user about what is measured; asked for after the first generation."""
        return []

    def best_of(self, strategy: Strategy, outcome: Outcome) -> float | None:
        """The best return of ``outcome`` that a policy can be kept for, if any."""
        ...

    def keep_best(self, strategy: Strategy, outcome: Outcome) -> None:
        """Keep the parameters that gave :meth:`best_of`: the next checkpoint holds them."""
        ...

    def write_best(self) -> None:
        """Write a policy that is kept into the run folder, if it is new there; a checkpoint holds it."""
        return

    def learnt(self) -> list[Array]:
        """Return what :meth:`learn` has built up, for the run's digest."""
        return []

    def describe_member(self, strategy: Strategy, outcome: Outcome, episode: int) -> str:
        """Name the member that returned ``outcome.returns[episode]``, and the seed that reproduces it."""
        ...

    def best_seen(self, progress: Progress) -> tuple[float | None, int | None]:
        """The best return of the run and its generation, for its summary."""
        return progress.best_return, progress.best_generation

    def module_maker(self, center: Tensor) -> Callable[[], nn.Module]:
        """Return a maker of new modules with these parameters, which nobody writes to any more."""
        ...

    def save_module(self, strategy: Strategy) -> None:
        """Write the centre's policy or module into the run folder, if there is one."""
        ...

    def state(self) -> tuple[Tensors, State]:
        """Return what :meth:`load_state` needs to go on bit for bit."""
        ...

    def load_state(self, tensors: Tensors, state: State) -> None:
        """Take over what :meth:`state` gave.

        Raises:
            InputError: it belongs to another policy or module.
        """
        ...


def copy_of_center(strategy: Strategy) -> NDArray[Any]:
    """The centre's numbers, to keep: the strategy goes on to write to its own, shape (dimension,)."""
    return strategy.center.detach().to("cpu", copy=True).numpy()
