"""Upload policies to Hugging Face repositories, and download them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from escalade.config.conversion import read_toml, to_toml
from escalade.config.files import code_named, read_config
from escalade.config.options import OPTIONS, Config
from escalade.errors import InputError
from escalade.policies.policy_file import PolicyFile
from escalade.storage.files import read_bytes, storage, temporary_folder, write_bytes
from escalade.storage.run_folder import FILMS, RunFolder
from escalade.support.imports import check_installed
from escalade.support.output import print_line, visible
from escalade.training.closing import closing_lines

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_NEUTRAL: dict[str, Any] = {
    "backend": "auto",
    "engine": "local",
    "worker_resources": {},
    "recorder": (),
    "run_dir": None,
    "start_from": None,
}
"""Values in a published config for options about the machine and the folder of the run."""
_NOT_PULLED = ("run", "novelty")
"""Groups of options that are dropped from a downloaded config, because a policy does not need them."""
_SECONDS = 60.0
"""Timeout of requests. The library of the hub has none by default."""


def push(run: str | PathLike[str], repo: str) -> str:
    """Upload the policy of a run with its config, a model card and its film.

    Entries of ``env_kwargs`` that contain text are left out, because it may be secret. A printed line and the
    model card list their names.

    Args:
        run: folder of a run that has ended, or ``zoo:NAME``.
        repo: ``OWNER/NAME``. The repository is created if needed.

    Returns:
        The URL of the repository.

    Raises:
        InputError: ``repo`` has a wrong form, the run has no policy, huggingface_hub or a token is missing,
            or the upload is rejected.
    """
    _check("'escalade push'", repo)
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, get_token

    folder = RunFolder.open(run)
    config = read_config(folder)
    hidden = sorted(name for name, value in config.env_kwargs.items() if _holds_text(value))
    public = {name: value for name, value in config.env_kwargs.items() if name not in hidden}
    config = config.replace(**_NEUTRAL, env_kwargs=public)
    settings = to_toml(config)
    summary = folder.read_summary()
    if not summary or not folder.policy.is_file():
        raise InputError(
            f"{folder.path} has no policy.safetensors and summary.json; push a run that has ended"
        )
    card = _card(config, settings, summary, repo, hidden)
    files: dict[str, Any] = {path.name: path for path in (folder.policy, *folder.films)}
    files |= {"config.toml": settings.encode(), "README.md": card.encode()}
    if get_token() is None:
        raise InputError("no Hugging Face token found; run 'hf auth login' or set HF_TOKEN")
    added = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=what) for name, what in files.items()]
    with _hub(repo) as api:
        address = str(api.create_repo(repo, exist_ok=True))
        gone = set(FILMS) - files.keys()  # films of an earlier push
        stale = [CommitOperationDelete(name) for name in sorted(gone & _files_in(api, repo))]
        api.create_commit(repo, [*added, *stale], commit_message=f"{config.env}, trained with Escalade")
    if hidden:
        print_line(f"not uploaded, because text may be secret: `env_kwargs` {', '.join(hidden)}")
    return address


def _card(config: Config, settings: str, summary: Mapping[str, Any], repo: str, hidden: Sequence[str]) -> str:
    """Return the README.md of a repository: YAML header, result, usage and settings."""
    name, env = repo.rpartition("/")[2], config.env
    judged = summary["eval_return_mean"] is not None and not summary.get("updates_since_evaluation")
    score = f"{summary['eval_return_mean']} +/- {summary['eval_return_std']}"
    result = {
        "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
        "dataset": {"type": env, "name": env},
        "metrics": [{"type": "mean_reward", "name": "mean_reward", "value": score, "verified": False}],
    }
    head = {  # written as JSON, which is valid YAML
        "library_name": "escalade",
        "tags": ["escalade", "evolution-strategies", "reinforcement-learning", config.strategy, env],
        "model-index": [{"name": name, "results": [result] if judged else []}],
    }
    parts = [
        "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in head.items()), "---"]),
        f"# {env}, trained with Escalade",
        *_result_of(summary),
        "## Usage",
        *_usage(config, summary.get("network") == "own", repo, hidden),
        "## Settings",
        f"```toml\n{settings.strip()}\n```",
    ]
    return visible("\n\n".join(parts) + "\n")


def _result_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield paragraphs about the result of a run."""
    yield from closing_lines(summary, None)
    if failed := summary.get("eval_failed"):
        yield f"{failed} of these episodes failed, and count as the worst of the others."
    yield f"SHA-256 of center and normalizer: `{summary['params_sha256']}`"


def _usage(config: Config, own: bool, repo: str, hidden: Sequence[str]) -> Iterator[str]:
    """Yield paragraphs about the usage of a policy. ``own`` is True if its network is user-defined."""
    name, named = repo.rpartition("/")[2], code_named(vars(config))
    if named:
        options = ", ".join(f"`{option}`" for option in named)
        yield f"The config imports code ({options}), which you need. Therefore `escalade pull` rejects it."
    if hidden:
        listed = ", ".join(hidden)
        yield f"It was trained with `env_kwargs` that are not published; set them again: {listed}."
    download = f"hf download {repo} --local-dir {name}" if named else f"escalade pull {repo}"
    play = [] if own else [f"escalade eval {name}"]
    yield "\n".join(f"    {command}" for command in ["pip install 'escalade[hub]'", download, *play])
    network = ", network" if own else ""
    module = " (`network` is a module like the trained one)" if own else ""
    loaded = f"policy = escalade.load({name!r}{network})"
    yield f"Then in Python: `{loaded}`{module} and `policy.act(observation)`."


def pull(repo: str, output: str | PathLike[str] | None = None) -> Path:
    """Download a policy of :func:`push` into a new folder, which can be used like a run folder.

    The policy file is validated. Only options about task, policy and training are taken from the config. A
    config that names code to import is rejected.

    Args:
        repo: ``OWNER/NAME``.
        output: path of the folder; None for NAME in the working folder.

    Returns:
        The path of the folder.

    Raises:
        InputError: the repository does not exist or has no policy of Escalade, or the folder exists already.
    """
    _check("'escalade pull'", repo)
    folder = RunFolder(Path(repo).name if output is None else output)
    if folder.path.exists():
        raise InputError(f"`output` {folder.path} exists already; choose a different one")
    with tempfile.TemporaryDirectory(dir=temporary_folder()) as place:
        with _hub(repo) as api:
            if not _files_in(api, repo).issuperset(wanted := (folder.policy.name, folder.config.name)):
                raise InputError(f"{repo} has no policy uploaded with 'escalade push'")
            found = [Path(api.hf_hub_download(repo, name, local_dir=place)) for name in wanted]
        try:
            PolicyFile.read(found[0])
            config = _plain(found[1])
        except InputError as problem:
            raise InputError(f"{repo}: {str(problem).replace(f'{place}/', '')}") from None
        with storage(folder.path):
            folder.path.mkdir(parents=True)
        write_bytes(folder.policy, read_bytes(found[0]))
        folder.write_config(to_toml(config))
    return folder.path


def _holds_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_text, value.values()))
    return isinstance(value, str) or (isinstance(value, list | tuple) and any(map(_holds_text, value)))


def _files_in(api: HfApi, repo: str) -> set[str]:
    return {file.rfilename for file in api.model_info(repo, timeout=_SECONDS).siblings or ()}


def _plain(path: Path) -> Config:
    """Return the config in an untrusted file, without options about the machine of its run.

    Raises:
        InputError: it names code to import.
    """
    values = read_toml(path)
    if named := code_named(values):
        raise InputError(f"config.toml imports code in `{named[0]}`, which 'escalade pull' does not allow")
    kept = (
        name for name in values if OPTIONS[name].metadata["group"] not in _NOT_PULLED and name != "start_from"
    )
    return Config(**{name: values[name] for name in kept})


def _check(command: str, repo: str) -> None:
    """Check the name of a repository, and that the hub's package is installed.

    Raises:
        InputError: the name does not have the form OWNER/NAME, or huggingface_hub is missing.
    """
    check_installed(command, "hub", "huggingface_hub")
    if not re.fullmatch("[^/]+/[^/]+", repo):
        raise InputError(f"repository {repo!r} must have the form OWNER/NAME")


@contextmanager
def _hub(repo: str) -> Iterator[HfApi]:
    """Yield the API of the hub, and convert its errors.

    Raises:
        InputError: the repository cannot be read or written, or the hub cannot be reached.
    """
    from huggingface_hub import HfApi, errors, get_session

    # Base class of errors of the hub's HTTP library. Without a network it does not raise HfHubHTTPError.
    unreached = cast("type[Exception]", errors.HfHubHTTPError.__mro__[1])
    session = get_session()
    own, session.timeout = session.timeout, _SECONDS
    try:
        yield HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    except InputError:
        raise
    except errors.RepositoryNotFoundError:
        fix = "check its name; for a private one, run 'hf auth login' or set HF_TOKEN"
        raise InputError(f"repository {repo} does not exist or is private; {fix}") from None
    except (unreached, OSError, ValueError) as problem:
        if "Timeout" in type(problem).__name__:
            raise InputError(
                f"{repo}: the hub did not respond within {_SECONDS:g} seconds; check the network and "
                "HF_ENDPOINT, and try again"
            ) from None
        raise InputError(f"{repo}: {problem}") from None
    finally:
        session.timeout = own
