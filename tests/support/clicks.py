"""A person at a browser: real clicks and keys in a Chromium without a window.

The browser is driven by its DevTools protocol over two pipes, which no other program can reach.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from chromium import FLAGS, browser

LIMIT_SECONDS = 30.0
_NAVIGATED = "Inspected target navigated or closed"
"""What the browser reports when the page goes while it evaluates an expression."""
_KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "ArrowDown": (40, ""),
    "ArrowRight": (39, ""),
    " ": (32, " "),
}


class Navigated(Exception):
    """The page went before the browser answered."""


class Person:
    """One page in a browser of its own; a context manager. ``complaints``: what the browser
    reported of errors and of what a policy forbade."""

    def __init__(
        self, url: str, width: int = 1280, height: int = 860, scheme: str = "light"
    ) -> None:
        found = browser()
        assert found is not None
        self.complaints: list[str] = []
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        low = (*os.pipe(), *os.pipe())
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
        inside, self._out, self._in, outside = ends
        for end in low:
            os.close(end)
        flags = [*FLAGS, f"--user-data-dir={self._profile.name}", "--remote-debugging-pipe"]
        # The browser reads file 3 and writes file 4.
        shell = ["bash", "-c", f'exec "$@" 3<&{inside} 4>&{outside}', "bash", found, *flags]
        self._process = subprocess.Popen(
            [*shell, "about:blank"],
            pass_fds=(inside, outside),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inside)
        os.close(outside)
        self._sent, self._buffer, self._session = 0, b"", ""
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")
        self.resize(width, height)
        self.prefers(scheme)
        self._send("Page.navigate", url=url)

    def __enter__(self) -> Person:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(10)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            reply = self._read(end)
            if reply.get("id") == self._sent:
                if _NAVIGATED in str(reply.get("error")):
                    raise Navigated
                assert "error" not in reply, f"{method}: {reply['error']}"
                result: dict[str, Any] = reply["result"]
                return result
            self._note(reply)

    def _read(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(str(parameters["entry"]))

    # --- seeing ----------------------------------------------------------------------------------

    def of(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self._send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """The visible text of an element; '' for one that is not there."""
        return str(
            self.of(f"(document.querySelector({json.dumps(selector)})||{{}}).innerText ?? ''")
        )

    def waits(self, condition: str) -> None:
        """Wait until a JavaScript condition holds, on another page if the browser goes there."""
        end = time.monotonic() + LIMIT_SECONDS
        while not self._holds(condition):
            assert time.monotonic() < end, (
                f"never: {condition}\n{self.text('body')}\n{self.complaints}"
            )
            time.sleep(0.05)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.of(f"Boolean({condition})"))
        except Navigated:
            return False

    def sees(self, selector: str, words: str) -> None:
        """Wait until an element shows ``words``."""
        found = f"(document.querySelector({json.dumps(selector)})||{{}}).innerText"
        self.waits(f"({found} ?? '').includes({json.dumps(words)})")

    def picture(self, path: Path) -> None:
        """What the page looks like, as a PNG."""
        data = self._send("Page.captureScreenshot", format="png", captureBeyondViewport=True)[
            "data"
        ]
        path.write_bytes(base64.b64decode(data))

    # --- doing -----------------------------------------------------------------------------------

    def reload(self) -> None:
        """Load the page again."""
        self._send("Page.reload")

    def resize(self, width: int, height: int) -> None:
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefers(self, scheme: str) -> None:
        """Ask for a ``"light"`` or ``"dark"`` scheme of colours."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._send("Emulation.setEmulatedMedia", features=[feature])

    def click(self, selector: str, times: int = 1) -> None:
        """Click on the middle of an element, which has to be visible."""
        name = json.dumps(selector)
        self.waits(f"document.querySelector({name})?.offsetParent")
        self.of(f"document.querySelector({name}).scrollIntoView({{block: 'center'}})")
        box = self.of(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({name}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased") * times:
            self._send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=times,
            )

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._send("Input.insertText", text=text)

    def press(self, key: str, *, ctrl: bool = False) -> None:
        """Press one key."""
        code, text = _KEYS.get(key) or (ord(key.upper()), key)
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 if ctrl else 0}
        down = {"text": text} if text and not ctrl else {}
        self._send("Input.dispatchKeyEvent", type="keyDown", **common, **down)
        self._send("Input.dispatchKeyEvent", type="keyUp", **common)
