"""Headless Chromium as a reader of pages, over its debugging protocol: one page, one connection."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 90.0


def chromium() -> str | None:
    """Where the browser is; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A page, and everything that it asked for or complained of since it was opened."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, width: int, dark: bool) -> None:
        """Open a file, in a window of this width."""
        self.requests.clear()
        self.complaints.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._hear()
        self.evaluate("new Promise(done => setTimeout(done, 100))")  # what is late comes in too

    def evaluate(self, expression: str) -> Any:
        """The value of some JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, output: Path) -> None:
        """A picture of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        output.write_bytes(base64.b64decode(data))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._number += 1
        number = self._number
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = self._hear()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=_SECONDS))
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                self.complaints.append(json.dumps(message["params"]))
        return message


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in ``folder``; it ends with the block."""
    program = chromium()
    assert program is not None
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"]
    flags += ["--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={folder}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([program, *flags, "about:blank"], **quiet)
    try:
        port = _port(folder / "DevToolsActivePort", process)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=_SECONDS) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        with connect(page["webSocketDebuggerUrl"], max_size=None, open_timeout=_SECONDS) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _port(file: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= 2:
            return lines[0]
        assert process.poll() is None, "the browser ended"
        time.sleep(0.1)
    raise TimeoutError("the browser does not answer")
