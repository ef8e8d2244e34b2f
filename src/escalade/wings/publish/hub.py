"""Policies to and from repositories of Hugging Face."""

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
from escalade.support.output import say, visible
from escalade.training.closing import closing_lines

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_PLACELESS: dict[str, Any] = {
    "backend": "auto",
    "engine": "local",
    "worker_resources": {},
    "recorder": (),
    "run_dir": None,
    "start_from": None,
}
"""Options of a published config in place of those that tell where the run ran and is."""
_NOT_PULLED = ("run", "novelty")
"""Groups of options that are not taken from a pulled config: what playing does not need."""
_SECONDS = 60.0
"""The longest wait for an answer of the hub; its library waits for ever by default."""


def push(run: str | PathLike[str], repo: str) -> str:
    """Upload a run's policy with its config, a model card and its film; the repository's address.

    Of ``env_kwargs``, those that hold text are left out, as it may be secret; a line and the card name them.

    Args:
        run: the folder of a run that has ended, or ``zoo:NAME``.
        repo: ``OWNER/NAME``; made where there is none.

    Raises:
        InputError: ``repo`` is another text, the run has no policy, huggingface_hub or a token is missing, or
            the upload is refused.
    """
    _check("'escalade push'", repo)
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, get_token

    folder = RunFolder.open(run)
    config = read_config(folder)
    hidden = sorted(name for name, value in config.env_kwargs.items() if _holds_text(value))
    public = {name: value for name, value in config.env_kwargs.items() if name not in hidden}
    config = config.replace(**_PLACELESS, env_kwargs=public)
    settings = to_toml(config)
    summary = folder.read_summary()
    if not summary or not folder.policy.is_file():
        raise InputError(
            f"{folder.path} has no policy.safetensors and summary.json: push a run that has ended"
        )
    card = _card(config, settings, summary, repo, hidden)
    files: dict[str, Any] = {path.name: path for path in (folder.policy, *folder.films)}
    files |= {"config.toml": settings.encode(), "README.md": card.encode()}
    if get_token() is None:
        raise InputError("there is no token of Hugging Face: 'hf auth login', or set HF_TOKEN")
    added = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=what) for name, what in files.items()]
    with _asking(repo) as api:
        address = str(api.create_repo(repo, exist_ok=True))
        gone = set(FILMS) - files.keys()  # films of an earlier push, where they are there
        stale = [CommitOperationDelete(name) for name in sorted(gone & _files_in(api, repo))]
        api.create_commit(repo, [*added, *stale], commit_message=f"{config.env}, trained with Escalade")
    if hidden:
        say(f"left out, as text may be a secret: `env_kwargs` {', '.join(hidden)}")
    return address


def _card(config: Config, settings: str, summary: Mapping[str, Any], repo: str, hidden: Sequence[str]) -> str:
    """Return the README.md of a repository: a head in YAML, the result, how to play it, its settings."""
    name, env = repo.rpartition("/")[2], config.env
    judged = summary["eval_return_mean"] is not None and not summary.get("updates_since_evaluation")
    score = f"{summary['eval_return_mean']} +/- {summary['eval_return_std']}"
    result = {
        "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
        "dataset": {"type": env, "name": env},
        "metrics": [{"type": "mean_reward", "name": "mean_reward", "value": score, "verified": False}],
    }
    head = {  # YAML holds JSON
        "library_name": "escalade",
        "tags": ["escalade", "evolution-strategies", "reinforcement-learning", config.strategy, env],
        "model-index": [{"name": name, "results": [result] if judged else []}],
    }
    parts = [
        "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in head.items()), "---"]),
        f"# {env}, trained with Escalade",
        *_result_of(summary),
        "## Play it",
        *_playing(config, summary.get("network") == "own", repo, hidden),
        "## Settings",
        f"```toml\n{settings.strip()}\n```",
    ]
    return visible("\n\n".join(parts) + "\n")


def _result_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield a run's result, a paragraph each."""
    yield from closing_lines(summary, None)
    if failed := summary.get("eval_failed"):
        yield f"Of these episodes {failed} failed, and count as the worst of the others."
    yield f"SHA-256 of centre and normaliser: `{summary['params_sha256']}`"


def _playing(config: Config, own: bool, repo: str, hidden: Sequence[str]) -> Iterator[str]:
    """Yield paragraphs on how to play the policy, of the user's ``own`` network if it is one."""
    name, named = repo.rpartition("/")[2], code_named(vars(config))
    if named:
        options = ", ".join(f"`{option}`" for option in named)
        yield f"Its config names code to import ({options}): `escalade pull` refuses it. It needs that code."
    if hidden:
        listed = ", ".join(hidden)
        yield f"It was trained with `env_kwargs` that are not published ({listed}): give them again."
    download = f"hf download {repo} --local-dir {name}" if named else f"escalade pull {repo}"
    play = [] if own else [f"escalade eval {name}"]
    yield "\n".join(f"    {command}" for command in ["pip install 'escalade[hub]'", download, *play])
    network = ", network" if own else ""
    module = ", where `network` is a module like the one it was trained with" if own else ""
    loaded = f"policy = escalade.load({name!r}{network})"
    yield f"In Python, after that: `{loaded}`{module}, and `policy.act(observation)`."


def pull(repo: str, output: str | PathLike[str] | None = None) -> Path:
    """Download what :func:`push` uploaded into a new folder, which can be read as a run's; the folder.

    The policy is checked as any policy's file. Of the config only what makes task, policy and training is
    kept: nothing in it names code, nor how many workers there are to be.

    Args:
        repo: ``OWNER/NAME``.
        output: the folder; NAME, in the working folder, where None.

    Raises:
        InputError: there is no such repository, it holds no policy of Escalade's, or the folder is there.
    """
    _check("'escalade pull'", repo)
    folder = RunFolder(Path(repo).name if output is None else output)
    if folder.path.exists():
        raise InputError(f"`output` {folder.path} is there already: name another")
    with tempfile.TemporaryDirectory(dir=temporary_folder()) as place:
        with _asking(repo) as api:
            if not _files_in(api, repo).issuperset(wanted := (folder.policy.name, folder.config.name)):
                raise InputError(f"{repo} has no policy that 'escalade push' uploaded")
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
    """Return the config in a stranger's file, without what would run code or is another machine's."""
    values = read_toml(path)
    if named := code_named(values):
        raise InputError(f"its config.toml names code to import, as `{named[0]}`: that is not pulled")
    kept = (
        name for name in values if OPTIONS[name].metadata["group"] not in _NOT_PULLED and name != "start_from"
    )
    return Config(**{name: values[name] for name in kept})


def _check(command: str, repo: str) -> None:
    """Refuse what is no repository's name, and a missing package.

    Raises:
        InputError: it is not of the form OWNER/NAME, or huggingface_hub is not installed.
    """
    check_installed(command, "hub", "huggingface_hub")
    if not re.fullmatch("[^/]+/[^/]+", repo):
        raise InputError(f"repository {repo!r} must be written as OWNER/NAME")


@contextmanager
def _asking(repo: str) -> Iterator[HfApi]:
    """The hub, whose library's errors become one line.

    Raises:
        InputError: the repository cannot be read or written, is not reached, or does not answer.
    """
    from huggingface_hub import HfApi, errors, get_session

    # The base class of errors in the hub's HTTP library: without a network it raises no HfHubHTTPError.
    unreached = cast("type[Exception]", errors.HfHubHTTPError.__mro__[1])
    session = get_session()
    own, session.timeout = session.timeout, _SECONDS
    try:
        yield HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    except InputError:
        raise
    except errors.RepositoryNotFoundError:
        mend = "check its name; a private one needs a token: 'hf auth login', or set HF_TOKEN"
        raise InputError(f"there is no repository {repo} that you may read: {mend}") from None
    except (unreached, OSError, ValueError) as problem:
        if "Timeout" in type(problem).__name__:
            raise InputError(
                f"{repo}: the hub did not answer within {_SECONDS:g} seconds; check the network and "
                "HF_ENDPOINT, and try again"
            ) from None
        raise InputError(f"{repo}: {problem}") from None
    finally:
        session.timeout = own
