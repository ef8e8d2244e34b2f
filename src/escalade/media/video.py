"""An episode as a film, on a machine with or without a display."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.envs import Environment
from escalade.envs.pixels.wrappers import is_atari
from escalade.envs.process import close, headless
from escalade.errors import InputError, StorageFailure
from escalade.media.playing import Acts, Played, drawing, make_drawing, play
from escalade.storage.files import AnyPath, check_output, path_of, storage, temporary_beside, write_bytes
from escalade.support.imports import install, missing

_GIF_FPS = 25.0  # browsers show faster ones slowly


def video_available() -> bool:
    """Return whether what writes videos is installed."""
    return not missing("imageio", "imageio_ffmpeg")


def record_episode(
    environment: Environment, policy: Acts, output: AnyPath, *, seed: int = 0, max_steps: int | None = None
) -> tuple[float, int]:
    """Film one episode from ``seed`` into ``output`` (mp4 or gif).

    The policy goes on from the state it has: reset one that remembers. The frames are those of
    Gymnasium's ``rgb_array``, whatever backend the run trained on.

    Returns:
        The episode's return, and its length in steps.

    Raises:
        InputError: imageio is missing, the ending is another, or the environment does not draw.
        EnvironmentFailure: drawing or stepping failed.
        StorageFailure: the film could not be written whole.
    """
    output = path_of(output, "choose another `output`")
    if not video_available():
        raise InputError(f"videos need imageio: {install('video')}")
    check_output(output, ".mp4", ".gif")
    headless()
    env = make_drawing(environment, "rgb_array", "rgb_array frames to film")
    played = Played()
    frames = _frames(env, policy, seed, max_steps, played)
    # A frame is drawn for every step of the policy, of which each may be several of the environment's. Games
    # have one speed, however many frames the emulator skips.
    skip = 1 if is_atari(environment.spec) else environment.frames.outer_skip(environment.spec)
    fps = float(env.metadata.get("render_fps") or 30) / skip
    try:
        with drawing(environment, "filmed"):
            if output.suffix.lower() == ".gif":
                write_bytes(output, _gif(frames, fps))
            else:
                _write_mp4(output, frames, fps)
    finally:
        close(env)
    return played.total, played.steps


def _frames(
    env: Any, policy: Acts, seed: int, most: int | None, played: Played
) -> Iterator[NDArray[np.uint8]]:
    for _ in play(env, policy, seed, most, played):
        yield env.render()


def _gif(frames: Iterator[NDArray[np.uint8]], fps: float) -> bytes:
    """The frames as a gif. In memory: a writer that fails on a file tries again when it is collected."""
    import imageio

    # Every k-th frame keeps the film's speed where the environment draws faster than a gif can.
    every = max(1, round(fps / _GIF_FPS))
    buffer = io.BytesIO()
    film = imageio.get_writer(buffer, format="GIF", mode="I", duration=1000 * every / fps, loop=0)
    with film:
        for number, frame in enumerate(frames):
            if number % every == 0:
                film.append_data(frame)
    return buffer.getvalue()


def _write_mp4(output: Path, frames: Iterator[NDArray[np.uint8]], fps: float) -> None:
    import imageio
    import imageio_ffmpeg

    film: Any
    with temporary_beside(output) as temporary:
        with storage(output, "choose another `output`"):  # ffmpeg would only break its pipe
            temporary.touch()
        count = 0
        with imageio.get_writer(temporary, format="FFMPEG", mode="I", fps=fps, macro_block_size=2) as film:
            for frame in frames:
                film.append_data(_even(frame))
                count += 1
        try:  # ffmpeg ends in silence when the disk is full
            whole = imageio_ffmpeg.count_frames_and_secs(str(temporary))[0] >= count
        except RuntimeError:
            whole = False
        if not whole:
            raise StorageFailure(f"{output} is not whole: make room, or choose another `output`")
        with storage(output, "choose another `output`"):
            temporary.replace(output)


def _even(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut to even sizes, which H.264 needs."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]
