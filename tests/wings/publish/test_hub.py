"""Push and pull with the real huggingface_hub and a small local server."""

import base64
import hashlib
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from torch import nn

import escalade
from escalade.cli.main import main
from escalade.config.files import read_config
from escalade.storage.run_folder import RunFolder

hub = pytest.importorskip("huggingface_hub")
COMMIT = "0" * 40
REPO = "someone/cartpole"


class Hub(BaseHTTPRequestHandler):
    """The part of a hub needed to upload small files and download them."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != "Bearer secret":
            return self._send(401, {"error": "Invalid username or password."})
        repo = "/".join(self.path.split("/")[3:5])
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.repos.setdefault(name, {})
            return self._send(200, {"url": f"{self.server.url}/{name}"})
        if self.path == "/api/validate-yaml":  # validation of the card
            return self._send(200, {"errors": [], "warnings": []})
        if "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return self._send(200, {"files": modes})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "deletedFile":
                del self.server.repos[repo][line["value"]["path"]]
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.server.repos[repo][line["value"]["path"]] = content
        return self._send(
            200, {"commitUrl": f"{self.server.url}/{repo}/commit/{COMMIT}", "commitOid": COMMIT}
        )

    def do_GET(self):
        if self.path.startswith("/api/models/"):
            return self._describe(self.path.removeprefix("/api/models/"))
        repo, _, file = self.path[1:].partition("/resolve/main/")
        files = self.server.repos[repo]
        digest = hashlib.sha1(files[file]).hexdigest()
        return self._send(200, files[file], {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT})

    def do_HEAD(self):
        self.do_GET()

    def _describe(self, repo):
        if repo not in self.server.repos:
            return self._send(404, {}, {"X-Error-Code": "RepoNotFound"})
        names = [{"rfilename": name} for name in self.server.repos[repo]]
        return self._send(200, {"id": repo, "siblings": names})

    def _send(self, status, content, headers=None):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments):
        """Print nothing."""


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Ignore clients that disconnect, because tests check the output."""


@pytest.fixture
def server(monkeypatch, tmp_path):
    with Server(("127.0.0.1", 0), Hub) as server:
        server.url, server.repos = f"http://127.0.0.1:{server.server_port}", {}
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", "secret")
        monkeypatch.chdir(tmp_path)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def run(museum):
    options = {"population": 4, "generations": 2, "eval_every": 2, "eval_episodes": 2, "preset": None}
    return museum.show(
        "pushed",
        lambda folder: escalade.train("CartPole-v1", run_dir=folder, workers=0, verbose=False, **options),
    )


def refused(capsys, *typed):
    """Return the one-line error of a command."""
    assert main(typed) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_a_zoo_policy_acts_the_same_after_push_and_pull(server, capsys):
    assert main(["push", "zoo:LunarLanderContinuous-v3", REPO]) == 0
    assert capsys.readouterr().out == f"{server.url}/{REPO}\n"
    assert set(server.repos[REPO]) == {"README.md", "config.toml", "policy.safetensors"}
    assert main(["pull", REPO]) == 0
    assert f"escalade eval {Path.cwd()}/cartpole" in capsys.readouterr().out
    own, pulled = (
        escalade.evaluate(run, episodes=2, workers=0) for run in ("zoo:LunarLanderContinuous-v3", "cartpole")
    )
    assert own.returns.tolist() == pulled.returns.tolist()
    assert escalade.load("cartpole").actions.continuous


def changed(run, folder, **changes):
    """Return a copy of a pushed run with different text in its config."""
    folder.mkdir()
    for name in ("policy.safetensors", "summary.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    config = (run / "config.toml").read_text()
    for option, value in changes.items():
        config = re.sub(f"^{option} = .*$", f"{option} = {value}", config, flags=re.MULTILINE)
    (folder / "config.toml").write_text(config)
    return folder


def test_text_in_env_kwargs_is_not_published(server, run, tmp_path, capsys):
    secret = '{"sutton_barto_reward" = true, "key" = "hunter2", "more" = {"a" = [1, "hunter2"]}}'
    assert main(["push", str(changed(run, tmp_path / "run", env_kwargs=secret)), REPO]) == 0
    assert "not uploaded, because text may be secret: `env_kwargs` key, more" in capsys.readouterr().out
    card, settings = (server.repos[REPO][name].decode() for name in ("README.md", "config.toml"))
    assert "hunter2" not in card + settings
    assert "set them again: key, more" in card
    assert "sutton_barto_reward" in settings


def test_a_pushed_run_includes_its_card_and_film(server, run, tmp_path):
    yaml = pytest.importorskip("yaml")
    folder = changed(run, tmp_path / "run", engine='"ray"', worker_resources="{CPU = 77}")
    (folder / "video.gif").write_bytes(b"film")
    assert main(["push", str(folder), REPO]) == 0
    assert server.repos[REPO]["video.gif"] == b"film"
    card = server.repos[REPO]["README.md"].decode()
    head = yaml.safe_load(card.split("---")[1])
    assert {"escalade", "reinforcement-learning", "CartPole-v1"} <= set(head["tags"])
    (result,) = head["model-index"][0]["results"]
    assert result["dataset"]["name"] == "CartPole-v1"
    mean = json.loads((run / "summary.json").read_text())["eval_return_mean"]
    assert result["metrics"][0]["value"].startswith(f"{mean} +/- ")
    assert f"escalade pull {REPO}" in card
    assert "population = 4" in card
    published = card + server.repos[REPO]["config.toml"].decode()
    assert str(run) not in published
    assert "CPU" not in published
    assert 'backend = "auto"' in card  # other versions may be installed on the pulling machine
    (folder / "video.gif").unlink()  # the film of an earlier push is removed
    summary = json.loads((folder / "summary.json").read_text()) | {"updates_since_evaluation": 2}
    (folder / "summary.json").write_text(json.dumps(summary))
    assert main(["push", str(folder), REPO]) == 0
    assert set(server.repos[REPO]) == {"README.md", "config.toml", "policy.safetensors"}
    assert "mean_reward" not in server.repos[REPO]["README.md"].decode()  # from an older policy


def test_pull_rejects_options_that_run_code_and_resets_workers(server, run, capsys):
    assert main(["push", str(run), REPO]) == 0
    config = server.repos[REPO]["config.toml"].decode()
    server.repos[REPO]["config.toml"] = config.replace("workers = 0", "workers = 4000").encode()
    assert "workers = 4000" in server.repos[REPO]["config.toml"].decode()
    assert main(["pull", REPO, "--output", "first"]) == 0
    assert read_config(RunFolder("first")).workers is None
    hostile = {
        "wrappers": config.replace("wrappers = []", 'wrappers = ["subprocess:run"]'),
        "env": config.replace('env = "CartPole-v1"', 'env = "antigravity:CartPole-v1"'),
    }
    for option, text in hostile.items():
        assert text != config
        server.repos[REPO]["config.toml"] = text.encode()
        capsys.readouterr()
        assert f"`{option}`" in refused(capsys, "pull", REPO, "--output", "second")
    assert not Path("second").exists()


@pytest.mark.parametrize("own", [False, True], ids=["a-class", "a-module"])
def test_the_card_of_a_run_with_code_lists_its_requirements(server, own, tmp_path):
    options = {"population": 4, "generations": 1, "preset": None, "workers": 0, "verbose": False}
    options |= {"network": nn.Linear(4, 2)} if own else {"wrappers": ["tests.environments:Offset"]}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "run", **options)
    assert main(["push", str(run.folder.path), REPO]) == 0
    card = server.repos[REPO]["README.md"].decode()
    assert (f"hf download {REPO} --local-dir cartpole" in card) is not own
    assert ("imports code (`wrappers`)" in card) is not own
    assert ("escalade.load('cartpole', network)" in card) is own
    assert ("escalade eval cartpole" in card) is not own


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("policy.safetensors", b"\x80\x04cos\nsystem\n", "policy.safetensors is damaged"),
        ("config.toml", b"speed = 3", "unknown option 'speed'"),
    ],
)
def test_a_damaged_file_is_reported_in_one_line(server, run, capsys, name, content, fragment):
    assert main(["push", str(run), REPO]) == 0
    server.repos[REPO][name] = content
    capsys.readouterr()
    assert fragment in refused(capsys, "pull", REPO)
    assert not Path("cartpole").exists()


def test_mistakes_of_push_and_pull_are_reported_in_one_line(server, run, monkeypatch, capsys):
    assert "repository nobody/nothing does not exist" in refused(capsys, "pull", "nobody/nothing")
    server.repos[REPO] = {"README.md": b"a poem"}
    assert "no policy uploaded with 'escalade push'" in refused(capsys, "pull", REPO)
    assert "'a//b' must have the form OWNER/NAME" in refused(capsys, "pull", "a//b")
    Path("cartpole").mkdir()
    assert "cartpole exists already" in refused(capsys, "pull", REPO)
    monkeypatch.setenv("HF_TOKEN", "wrong")
    server.repos.clear()
    assert "Invalid username or password" in refused(capsys, "push", str(run), REPO)
    monkeypatch.setattr(hub, "get_token", lambda: None)
    assert "no Hugging Face token" in refused(capsys, "push", str(run), REPO)
    monkeypatch.setattr("escalade.support.imports.missing", lambda *packages: list(packages))
    for typed in (["push", str(run), REPO], ["pull", REPO, "--output", "x"]):
        assert "needs huggingface_hub; install the extra 'hub'" in refused(capsys, *typed)


def test_an_unreachable_hub_is_reported_in_one_line(server, run, monkeypatch, capsys):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert REPO in refused(capsys, "push", str(run), REPO)
    assert REPO in refused(capsys, "pull", REPO)


def test_a_hub_that_never_responds_is_reported_in_one_line(server, monkeypatch, capsys):
    monkeypatch.setattr("escalade.wings.publish.hub._SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections, but never reads
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        message = refused(capsys, "pull", REPO)
    assert (
        f"{REPO}: the hub did not respond within 0.05 seconds; check the network and HF_ENDPOINT" in message
    )
    assert hub.get_session().timeout.read is None  # unchanged
