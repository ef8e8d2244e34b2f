"""The objective of a run: a policy in an environment, or a module with a fitness function."""

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
    """Evaluation of the unperturbed policy."""

    returns: Array
    """Returns of its episodes, shape (n,)."""
    env_steps: int = 0
    """Environment steps of all episodes."""
    member_fitness: float | None = None
    """Fitness that the unperturbed policy would have as a member, or None if it is the mean return."""
    further: Counts = Counts()
    """Counts of other centers' episodes."""
    raised: str | None = None
    """Message of one tolerated exception of its episodes, or None if there was no exception."""
    failed: int = 0
    """Number of episodes that failed or had no usable return."""

    @property
    def mean(self) -> float:
        """Mean return, clipped to the range of the returns, so that the mean of equal returns is exact."""
        return float(np.clip(self.returns.mean(), self.returns.min(), self.returns.max()))

    @property
    def std(self) -> float:
        """Standard deviation of the returns, NaN if a return is not finite."""
        with np.errstate(invalid="ignore"):
            return float(self.returns.std())

    @property
    def fitness(self) -> float:
        """Fitness that the unperturbed policy would have as a member, by the same score."""
        return self.mean if self.member_fitness is None else self.member_fitness

    @property
    def counts(self) -> Counts:
        """Counts of the evaluation."""
        own = Counts(eval_episodes=len(self.returns), eval_steps=self.env_steps, eval_failed=self.failed)
        return own + self.further


@dataclass(frozen=True)
class Outcome:
    """Results of a generation."""

    fitness: Array
    """Fitness of each member, shape (population,), in member order."""
    returns: Array
    """Returns of the members' episodes, shape (episodes,), one or several per member."""
    scores: Array
    """Scores of the episodes, whose means are fitness, shape (episodes,): returns, or transformed returns."""
    evaluation: Evaluation | None
    """Evaluation of the unperturbed policy, or None in generations without one."""
    comparable: bool = True
    """True if the evaluation can be ranked among the members; False if its episodes exceed their cap."""
    shaped: Array | None = None
    """Values passed to the strategy instead of fitness, shape (population,), or None.

    Set in a novelty search, and if episodes of different pairs begin in different states.
    """
    env_steps: int | None = None
    """Environment steps of the members' episodes, or None without an environment."""
    raised: NDArray[np.object_] | None = None
    """Messages of tolerated exceptions, shape (episodes,), None for episodes without one."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Suggestions by kind. A run prints each kind once."""
    info: tuple[tuple[str, float | None], ...] = ()
    """See :attr:`escalade.recorders.Row.info`."""
    behaviors: NDArray[np.float32] | None = None
    """Mean behavior of each member's episodes, shape (population, size), or None if none is configured."""
    further: Counts = Counts()
    """Counts of the center's episodes that are not part of the evaluation."""
    details: Any = None
    """Private data of the objective for :meth:`Objective.learn`."""

    def describe_result(self, index: int) -> str:
        """Describe how an episode ended: ``returned nan``, or ``raised`` and the exception's message."""
        message = None if self.raised is None else self.raised[index]
        return f"returned {self.scores[index]}" if message is None else f"raised {message}"

    @property
    def counts(self) -> Counts:
        """Counts of the generation, without seconds."""
        found = Counts(episodes=len(self.returns), env_steps=self.env_steps or 0) + self.further
        return found if self.evaluation is None else found + self.evaluation.counts


class Objective(Protocol):
    """Evaluates members and the center, and stores its own state, such as a normalizer.

    All results must be functions of the strategy's state, of the objective's :meth:`state` and of the run's
    seed. Runs with the same seed are then bit-identical.
    """

    direction: float
    """1 if larger returns are better, -1 if smaller ones are."""
    subject: str
    """The trained object in messages: ``policy`` or ``module``."""
    unit: str
    """The source of returns in messages: ``episodes`` or ``calls of fitness``."""
    counts_steps: bool
    """True if there are environment steps to count."""
    forgives: str | None
    """Option by which episodes that raise count as the generation's worst, or None if they end the run."""
    tie_advice: str
    """Advice for a generation whose members all have the same fitness; may be empty."""

    def measure(self, strategy: Strategy, *, evaluate: bool) -> Outcome:
        """Evaluate the generation's members, and with ``evaluate`` the center.

        Raises:
            EnvironmentFailure: The environment or the fitness function raised.
            KeyboardInterrupt: The run was interrupted. The state has not changed.
        """
        ...

    def confirm(self, strategy: Strategy, evaluation: Evaluation) -> Evaluation:
        """Evaluate a center again whose ``evaluation`` met the target, because that may have been luck."""
        return evaluation

    def evaluate(self, strategy: Strategy) -> Evaluation:
        """Evaluate the final center. With several centers, evaluate all, and leave the best one drawn."""
        ...

    def settle(self, strategy: Strategy) -> None:
        """With several centers, draw the best known one."""
        return

    def learn(self, outcome: Outcome) -> None:
        """Update the objective's state from a generation, after the strategy's ``tell``."""
        ...

    def reproducibility_notes(self) -> list[str]:
        """Return warnings about irreproducible results. Called after the first generation."""
        return []

    def best_of(self, strategy: Strategy, outcome: Outcome) -> float | None:
        """Return the best return of ``outcome`` whose policy can be stored, or None."""
        ...

    def keep_best(self, strategy: Strategy, outcome: Outcome) -> None:
        """Store the parameters of :meth:`best_of`, for the next checkpoint."""
        ...

    def write_best(self) -> None:
        """Write the stored best policy into the run folder, if it changed. A checkpoint already holds it."""
        return

    def learnt(self) -> list[Array]:
        """Return the arrays that :meth:`learn` updates, for the run's digest."""
        return []

    def describe_member(self, strategy: Strategy, outcome: Outcome, episode: int) -> str:
        """Describe the member with ``outcome.returns[episode]``, and the seed that reproduces the episode."""
        ...

    def best_seen(self, progress: Progress) -> tuple[float | None, int | None]:
        """Return the best return of the run and its generation, for the summary."""
        return progress.best_return, progress.best_generation

    def module_maker(self, center: Tensor) -> Callable[[], nn.Module]:
        """Return a function that creates modules with these parameters. ``center`` must not change later."""
        ...

    def save_module(self, strategy: Strategy) -> None:
        """Write the center's policy or module into the run folder, if there is one."""
        ...

    def state(self) -> tuple[Tensors, State]:
        """Return the state that :meth:`load_state` needs for a bit-identical continuation."""
        ...

    def load_state(self, tensors: Tensors, state: State) -> None:
        """Restore the state that :meth:`state` returned.

        Raises:
            InputError: The state is of a different policy or module.
        """
        ...


def copy_of_center(strategy: Strategy) -> NDArray[Any]:
    """Return a copy of the center, shape (dimension,), on the CPU. The strategy changes its own in place."""
    return strategy.center.detach().to("cpu", copy=True).numpy()
