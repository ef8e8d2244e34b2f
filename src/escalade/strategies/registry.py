"""Every strategy by name, with the properties that are needed before torch is imported.

A new strategy is one file with its class, one entry here, and one import for type checkers in
:mod:`escalade.strategies`. The command line's checks and the table in the guide follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from escalade.support.registry import Entry

POPULATION: Final = 64
"""Default population of a run, unless the strategy has its own default."""


@dataclass(frozen=True, kw_only=True)
class StrategyEntry(Entry):
    """Registry entry of a strategy, available without importing its class."""

    title: str = field(default="", init=False)  # the class has a name
    paper: str
    use: str
    """Its purpose, for the table in the guide."""
    grows: bool = True
    """True if the number of members can change between generations."""
    restarts: bool = False
    """True if a search stops by itself, so that :func:`escalade.optimize` can restart it."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default population and step size of a run that sets neither, nor options of the strategy's own."""

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.home.partition(":")[2]


_of_fixed_size = partial(StrategyEntry, grows=False)
_adaptive = partial(StrategyEntry, options=frozenset({"lr"}))

STRATEGIES: Final[dict[str, StrategyEntry]] = {
    "openai-es": StrategyEntry(
        "escalade.strategies.openai_es:OpenAIES",
        paper="Salimans et al. 2017",
        use="networks; any optimizer of `torch.optim`, and `ClipUp`",
        options=frozenset({"lr"}),
    ),
    "ars": StrategyEntry(
        "escalade.strategies.ars:ARS",
        paper="Mania et al. 2018",
        use="linear policies and small networks",
        options=frozenset({"lr"}),
        # Few members at first, because the first generations matter if each takes seconds. Their gradient
        # estimate is noisier, so their step size is smaller too.
        defaults={"population": "linear:16:64:64", "lr": "linear:0.07:0.1:64"},
    ),
    "pgpe": _adaptive(
        "escalade.strategies.pgpe:PGPE",
        paper="Sehnke et al. 2010",
        use="networks, when the scale of each parameter should adapt",
    ),
    "snes": _adaptive(
        "escalade.strategies.snes:SNES",
        paper="Schaul et al. 2011",
        use="networks and functions, when the scale of each parameter should adapt",
    ),
    "simple-gaussian": _of_fixed_size(
        "escalade.strategies.simple_gaussian:SimpleGaussian",
        paper="Rechenberg 1973",
        use="quick starts on easy problems",
        options=frozenset({"lr"}),
    ),
    "cem": _adaptive(
        "escalade.strategies.cem:CEM",
        paper="de Boer et al. 2005",
        use="quick starts on easy problems",
        grows=False,
    ),
    "sep-cma-es": _of_fixed_size(
        "escalade.strategies.sep_cma:SepCMAES",
        paper="Ros and Hansen 2008",
        use="thousands of parameters",
        restarts=True,
    ),
    "cma-es": _of_fixed_size(
        "escalade.strategies.cma:CMAES",
        paper="Hansen 2016",
        use="up to a few hundred parameters that depend on each other",
        restarts=True,
    ),
    "ma-es": _of_fixed_size(
        "escalade.strategies.ma:MAES",
        paper="Beyer and Sendhoff 2017",
        use="up to a thousand parameters that depend on each other",
        restarts=True,
    ),
    "lm-ma-es": _of_fixed_size(
        "escalade.strategies.lm_ma:LMMAES",
        paper="Loshchilov et al. 2017",
        use="thousands of parameters, some of which depend on each other",
    ),
    "cr-fm-nes": _of_fixed_size(
        "escalade.strategies.cr_fm_nes:CRFMNES",
        paper="Nomura and Ono 2022",
        use="thousands of parameters on scales of their own, along one valley",
    ),
    "vd-cma": _of_fixed_size(
        "escalade.strategies.vd_cma:VDCMA",
        paper="Akimoto et al. 2014",
        use="thousands of parameters on scales of their own, along one valley",
    ),
    "rm-es": _of_fixed_size(
        "escalade.strategies.rm_es:RMES",
        paper="Li and Zhang 2018",
        use="thousands of parameters, along few valleys",
    ),
    "xnes": _of_fixed_size(
        "escalade.strategies.xnes:XNES",
        paper="Glasmachers et al. 2010",
        use="up to a hundred parameters that depend on each other",
        options=frozenset({"lr"}),
        restarts=True,
    ),
    "canonical-es": StrategyEntry(
        "escalade.strategies.canonical_es:CanonicalES",
        paper="Chrabaszcz et al. 2018",
        use="networks, without a learning rate",
        grows=False,
    ),
    "des": _adaptive(
        "escalade.strategies.des:DES",
        paper="Lange et al. 2023",
        use="networks and functions, when the scale of each parameter should adapt",
    ),
    "les": StrategyEntry(
        "escalade.strategies.les:LES",
        paper="Lange et al. 2023",
        use="policies, with nothing to tune",
    ),
    "deep-ga": StrategyEntry(
        "escalade.strategies.deep_ga:DeepGA",
        paper="Such et al. 2017",
        use="networks whose fitness has no slope to follow",
        grows=False,
    ),
}

DEFAULT: Final = "ars"
"""Default strategy of a run."""


def defaults_of(strategy: str) -> Mapping[str, Any]:
    """Return :attr:`StrategyEntry.defaults`, which are empty for a user's class."""
    return STRATEGIES[strategy].defaults if strategy in STRATEGIES else {}


GROWTH_OPTIONS: Final = ("min_episodes", "min_env_steps")
"""Options that make generations grow, for strategies with ``grows``."""

STRATEGY_OPTIONS: Final = tuple(sorted(frozenset().union(*(entry.options for entry in STRATEGIES.values()))))
"""Options of a training run that only some strategies accept."""
