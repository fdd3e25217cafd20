"""A real browser without a window, driven by what Chromium tells developers: DevTools' protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waiting import wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium: apt-get install chromium"
PATIENCE_S = 120  # on a busy machine


def chromium() -> str | None:
    """The program, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page in a browser.

    Attributes:
        problems: what its console or the browser complained about.
        requests: addresses that it loaded.
    """

    def __init__(self, socket: Any) -> None:
        self._socket, self._number = socket, 0
        self.problems: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that come meanwhile are noted."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return dict(message["result"])
            self._note(message.get("method", ""), message.get("params", {}))

    def _note(self, method: str, about: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(about["exceptionDetails"]))
        if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(about["args"]))
        if method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(about["entry"]["text"])

    def run(self, code: str) -> Any:
        """Value of an expression of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        wait_until(lambda: self.run(f"Boolean({condition})"), PATIENCE_S, f"{condition} did not become true")

    def open(self, page: Path | str, *, width: int = 1280, dark: bool = False) -> None:
        """Load a file as from disk, or an address."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        for address in (
            "about:blank",
            page if isinstance(page, str) else page.resolve().as_uri(),
        ):  # otherwise the page before might be taken for this one
            self.send("Page.navigate", url=address)
            self.wait(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Move the mouse over an element that rests, to shares of its width and height.

        A picture that arrives moves the elements below it, from under a mouse that is about to press.
        """
        resting = """(async element => {
            for (let before; ;) {
                element.scrollIntoView({block: 'center'});
                const {x, y, width, height} = element.getBoundingClientRect(), box = [x, y, width, height];
                const here = [...document.images].every(each => each.complete || each.loading === 'lazy');
                if (here && String(box) === before) return box;
                before = String(box);
                await new Promise(rested => setTimeout(rested, 50));
            }
        })"""
        left, top, width, height = self.run(f"{resting}(document.querySelector({json.dumps(selector)}))")
        x, y = left + across * width, top + down * height
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self._at = (x, y)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        self.point(selector)
        x, y = self._at
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def choose(self, selector: str, path: Path) -> None:
        """Choose a file for an input."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def drop(self, selector: str, path: Path) -> None:
        """Drag a file from elsewhere over an element, and let it go there."""
        self.point(selector)
        x, y = self._at
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def addresses(self) -> list[str]:
        """Of all pages of the browser."""
        return [each["url"] for each in self.send("Target.getTargets")["targetInfos"]]

    def press(self, key: str) -> None:
        """Press a key by its name, such as ``Tab`` or ``ArrowRight``."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        about = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        self.send("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with an empty page, which ends with the block."""
    from websocket import create_connection

    program = chromium()
    assert program, MISSING
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={profile}"]
        process = subprocess.Popen([program, *options, "about:blank"], stderr=subprocess.DEVNULL)
        try:
            socket = create_connection(_address(Path(profile) / "DevToolsActivePort"), timeout=PATIENCE_S)
            yield Page(socket)
            socket.close()
        finally:
            process.terminate()
            process.wait()


def _address(port_file: Path) -> str:
    """Of the page, once the browser listens."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if port_file.is_file() and (lines := port_file.read_text().split()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as answer:
                pages = [each for each in json.load(answer) if each["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise AssertionError(f"Chromium did not start in {PATIENCE_S} s")
