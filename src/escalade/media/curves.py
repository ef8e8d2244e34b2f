"""Learning curves, from progress.csv to a picture."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Sequence
from pathlib import Path

from escalade.errors import InputError
from escalade.recorders.progress import read_progress
from escalade.storage.files import write_bytes

_COLOURS = ("#2a6fbb", "#d1495b", "#3f8f5f", "#edae49", "#7d5ba6", "#66717e")
_FORMATS = (".png", ".pdf", ".svg")


def plotting_available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def plot_runs(runs: Sequence[Path], output: Path, target: float | None = None, title: str = "") -> None:
    """Draw the learning curves of run folders into ``output`` (png, pdf or svg).

    For each run: the unperturbed policy's evaluations, the population's mean, and its range from
    worst to best member, over training steps. ``target`` is drawn as a line.

    Raises:
        InputError: matplotlib is missing, a folder is no run, or the output's ending is another.
    """
    if not plotting_available():
        raise InputError("plots need matplotlib: pip install 'escalade[plot]'")
    if output.suffix.lower() not in _FORMATS:
        raise InputError(f"`output` {output} must end in {', '.join(_FORMATS)}")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output}: there is no folder {output.parent}")
    progress = [(run, read_progress(run / "progress.csv")) for run in runs]
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for number, (run, columns) in enumerate(progress):
        colour = _COLOURS[number % len(_COLOURS)]
        steps, label = columns["env_steps"], run.resolve().name if len(runs) > 1 else ""
        axes.fill_between(
            steps, columns["return_min"], columns["return_max"], color=colour, alpha=0.13, linewidth=0
        )
        axes.plot(
            steps,
            columns["return_mean"],
            color=colour,
            alpha=0.6,
            linewidth=1,
            label=_label(label, "population mean"),
        )
        evaluated = [
            (s, e) for s, e in zip(steps, columns["eval_return_mean"], strict=True) if not math.isnan(e)
        ]
        if evaluated:
            axes.plot(
                *zip(*evaluated, strict=True),
                color=colour,
                linewidth=2,
                label=_label(label, "unperturbed policy"),
            )
    if target is not None:
        axes.axhline(target, color="#66717e", linestyle="--", linewidth=1, label=f"target {target:g}")
    axes.set_xlabel("training steps")
    axes.set_ylabel("return")
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="best")
    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix.lower()[1:], dpi=120)
    write_bytes(output, picture.getvalue())


def _label(run: str, what: str) -> str:
    return f"{run}: {what}" if run else what
