"""Pictures of a sweep, drawn by Optuna."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from escalade.media.figure import save_figure

if TYPE_CHECKING:
    from optuna import Study

PICTURES = {
    "history.png": ("Return of the trials", "plot_optimization_history"),
    "importance.png": ("How much each option matters", "plot_param_importances"),
    "parallel.png": ("Options and returns", "plot_parallel_coordinate"),
}
"""Pictures in a sweep's folder: their titles, and the functions of Optuna that draw them."""


def draw_pictures(study: Study, folder: Path) -> list[str]:
    """Draw what a sweep has enough trials for; the files' names."""
    from matplotlib import pyplot, rc_context
    from optuna.importance import PedAnovaImportanceEvaluator  # Optuna's default needs scikit-learn
    from optuna.visualization import matplotlib as plots

    values = [one.value for one in study.trials if one.state.name == "COMPLETE"]
    drawn = []
    for name, (_, draw) in PICTURES.items():
        evaluated = {"evaluator": PedAnovaImportanceEvaluator()} if name == "importance.png" else {}
        if evaluated and (len(values) < 4 or len(set(values)) == 1):
            continue  # so few say nothing of importance
        with rc_context({"savefig.bbox": "tight"}), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are experimental
            figure = getattr(plots, draw)(study, target_name="return", **evaluated).figure
            figure.set_size_inches(9, 5)
            save_figure(figure, folder / name)
            pyplot.close(figure)
        drawn.append(name)
    return drawn
