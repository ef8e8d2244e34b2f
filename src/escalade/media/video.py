"""Writes a video of an episode, with or without a display."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from escalade.envs import Environment
from escalade.envs.pixels.wrappers import is_atari
from escalade.envs.process import headless
from escalade.errors import StorageFailure
from escalade.media.playing import Played, drawable, play
from escalade.storage.files import AnyPath, check_output, path_of, storage, temporary_beside, write_bytes
from escalade.support.imports import check_installed

if TYPE_CHECKING:
    from escalade.policies.policy import Policy

_GIF_FPS = 25.0  # browsers slow down faster ones


def record_episode(
    environment: Environment, policy: Policy, output: AnyPath, *, seed: int = 0, max_steps: int | None = None
) -> tuple[float, int]:
    """Write a video of one episode from ``seed`` to ``output`` (mp4 or gif).

    The policy continues from its current state, so reset a recurrent policy first. Frames are those of
    Gymnasium's ``rgb_array``, independent of the backend used in training.

    Returns:
        Return and length of the episode.

    Raises:
        InputError: imageio is missing, the extension is not supported, or the environment cannot render.
        EnvironmentFailure: rendering or stepping failed.
        StorageFailure: the video could not be written completely.
    """
    output = path_of(output, "choose a different `output`")
    check_installed("a video", "video", "imageio", "imageio_ffmpeg")
    check_output(output, ".mp4", ".gif")
    headless()
    played = Played()
    # One frame per policy step, which may be several environment steps. The speed of Atari games does not
    # depend on the frames that the emulator skips.
    skip = 1 if is_atari(environment.spec) else environment.frames.outer_skip(environment.spec)
    write = _write_gif if output.suffix.lower() == ".gif" else _write_mp4
    with drawable(environment, "rgb_array", "render mode rgb_array, which videos need") as env:
        frames = (env.render() for _ in play(env, policy, seed, max_steps, played))
        write(output, frames, float(env.metadata.get("render_fps") or 30) / skip)
    return played.total, played.steps


def _write_gif(output: Path, frames: Iterator[NDArray[np.uint8]], fps: float) -> None:
    """Write a gif, in memory first: a writer that fails on a file tries again when it is collected."""
    import imageio

    # Use every k-th frame if the environment renders faster than a gif can be shown.
    every = max(1, round(fps / _GIF_FPS))
    buffer = io.BytesIO()
    film = imageio.get_writer(buffer, format="GIF", mode="I", duration=1000 * every / fps, loop=0)
    with film:
        for number, frame in enumerate(frames):
            if number % every == 0:
                film.append_data(frame)
    write_bytes(output, buffer.getvalue())


def _write_mp4(output: Path, frames: Iterator[NDArray[np.uint8]], fps: float) -> None:
    import imageio
    import imageio_ffmpeg

    film: Any
    with temporary_beside(output) as temporary:
        with storage(output, "choose a different `output`"):  # ffmpeg would only report a broken pipe
            temporary.touch()
        count = 0
        with imageio.get_writer(temporary, format="FFMPEG", mode="I", fps=fps, macro_block_size=2) as film:
            for frame in frames:
                film.append_data(_even(frame))
                count += 1
        try:  # ffmpeg does not report a full disk
            whole = imageio_ffmpeg.count_frames_and_secs(str(temporary))[0] >= count
        except RuntimeError:
            whole = False
        if not whole:
            raise StorageFailure(f"{output} is incomplete: free disk space, or choose a different `output`")
        with storage(output, "choose a different `output`"):
            temporary.replace(output)


def _even(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Crop to even sizes, as H.264 requires."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]
