"""An episode as a film, on a machine with or without a display."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium import error
from numpy.typing import NDArray

from escalade.envs import Environment
from escalade.envs.environment import headless, pip_line
from escalade.errors import EnvironmentFailure, InputError
from escalade.storage.files import temporary_beside

_FORMATS = (".mp4", ".gif")
_GIF_FPS = 25.0  # browsers show faster ones slowly


class Acts(Protocol):
    """Whoever chooses actions."""

    def act(self, observation: Any) -> Any:
        """The action for one observation."""
        ...


def video_available() -> bool:
    """Whether what writes videos is installed."""
    return all(importlib.util.find_spec(name) for name in ("imageio", "imageio_ffmpeg"))


def record_episode(
    environment: Environment, policy: Acts, output: Path, *, seed: int = 0, max_steps: int | None = None
) -> tuple[float, int]:
    """Film one episode from ``seed`` into ``output`` (mp4 or gif); its return and length in steps.

    The frames are those of Gymnasium's ``rgb_array``, whatever backend the run trained on.

    Raises:
        InputError: imageio is missing, the ending is another, or the environment does not draw.
        EnvironmentFailure: drawing or stepping failed.
    """
    if not video_available():
        raise InputError("videos need imageio: pip install 'escalade[video]'")
    if output.suffix.lower() not in _FORMATS:
        raise InputError(f"`output` {output} must end in .mp4 or .gif")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output} cannot be written: there is no folder {output.parent}")
    headless()
    try:
        env = environment.make(render_mode="rgb_array")
    except error.DependencyNotInstalled as problem:
        raise _needs_package(environment, problem) from problem
    except TypeError as problem:  # its constructor has never heard of render_mode
        raise InputError(f"environment {environment.id} has no rgb_array frames to film") from problem
    except Exception as problem:
        raise EnvironmentFailure(f"environment {environment.id} cannot draw: {problem}") from problem
    if "rgb_array" not in env.metadata.get("render_modes", ()):
        raise InputError(f"environment {environment.id} has no rgb_array frames to film")
    played = _Played()
    try:
        frames = _frames(env, policy, seed, max_steps, played)
        with temporary_beside(output) as temporary:
            _write(temporary, frames, float(env.metadata.get("render_fps") or 30))
            temporary.replace(output)
    except (InputError, KeyboardInterrupt):
        raise
    except error.DependencyNotInstalled as problem:
        raise _needs_package(environment, problem) from problem
    except OSError as problem:
        raise InputError(f"`output` {output} cannot be written: {problem.strerror or problem}") from None
    except Exception as problem:
        raise EnvironmentFailure(
            f"environment {environment.id} failed while it was filmed: {type(problem).__name__}: {problem}"
        ) from problem
    finally:
        env.close()
    return played.total, played.steps


def _needs_package(environment: Environment, problem: Exception) -> InputError:
    line = pip_line(environment.spec, problem)
    return InputError(f"environment {environment.id} needs a package to draw: {line}")


class _Played:
    total = 0.0
    steps = 0


def _frames(
    env: Any, policy: Acts, seed: int, most: int | None, played: _Played
) -> Iterator[NDArray[np.uint8]]:
    observation, _ = env.reset(seed=seed)
    yield env.render()
    ended = False
    while not ended and (most is None or played.steps < most):
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        played.total += float(reward)
        played.steps += 1
        ended = terminated or truncated
        yield env.render()


def _write(path: Path, frames: Iterator[NDArray[np.uint8]], fps: float) -> None:
    import imageio

    film: Any
    if path.suffix.lower() == ".gif":
        # Every k-th frame keeps the film's speed where the environment draws faster than a gif can.
        every = max(1, round(fps / _GIF_FPS))
        with imageio.get_writer(path, format="GIF", mode="I", duration=1000 * every / fps, loop=0) as film:
            for number, frame in enumerate(frames):
                if number % every == 0:
                    film.append_data(frame)
        return
    with imageio.get_writer(path, format="FFMPEG", mode="I", fps=fps, macro_block_size=2) as film:
        for frame in frames:
            film.append_data(_even(frame))


def _even(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut to even sizes, which H.264 needs."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]
