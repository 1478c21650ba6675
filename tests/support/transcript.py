"""Transcripts: pages with what a person typed and what came of it, carried out again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Run = Callable[[str], str]

LIMIT_SECONDS = 20.0
"""How long one input may take on a busy machine."""
_QUIET_SECONDS = 0.3
"""A screen that has not changed for so long is done, if its last line is a prompt."""


def replayed(page: Path, prompt: str, run: Run, steady: Sequence[tuple[str, str]]) -> str:
    """``page`` with what each input prints now. An input is a line that begins with ``prompt``, and
    goes on behind a backslash; prose above the first one stays. ``steady``: (pattern, text) of what
    differs between runs."""
    head, *inputs = re.split(rf"^{re.escape(prompt)}", page.read_text("utf-8"), flags=re.MULTILINE)
    parts = [head]
    for part in inputs:
        lines = part.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
        given = "\n".join(lines[:end])
        printed = run(given.replace("\\\n", " "))
        for pattern, text in steady:
            printed = re.sub(pattern, text, printed)
        shown = "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n")
        parts.append(f"{prompt}{given}\n{shown}\n\n" if shown else f"{prompt}{given}\n\n")
    return "".join(parts).rstrip("\n") + "\n"


@dataclass
class Place:
    """A folder in which commands run, with a home and an environment of their own."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("BLENDFUSION", "TMUX"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"HOME": str(self.folder), "PATH": path, "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
        return kept | own | {"PYTHONWARNINGS": "default"} | self.variables

    def run(self, command: str) -> str:
        """What a command prints, errors among the rest, and its status unless that is 0."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_SECONDS,
        )
        return done.stdout + (f"[status {done.returncode}]\n" if done.returncode else "")


class Screen:
    """A terminal of 100 columns in which one program runs: keys go in, the screen is read."""

    def __init__(self, place: Place, command: str) -> None:
        self._tmux = [shutil.which("tmux") or "tmux", "-S", str(place.folder / "tmux")]
        self._call("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "-c",
                   str(place.folder), command, env=place.environment)  # fmt: skip

    def _call(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        command = [*self._tmux, *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20)
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Tab, C-c."""
        self._call("send-keys", *keys)

    def type(self, text: str) -> None:
        # tmux takes a semicolon at the end of an argument for the end of its command.
        self._call("send-keys", "-l", f"{text[:-1]}\\;" if text.endswith(";") else text)

    def settled(self, typed: str, *ends: str) -> str:
        """The screen once it stands still, shows ``typed``, and ends with one of ``ends``; whatever
        it shows after LIMIT_SECONDS."""
        end = time.monotonic() + LIMIT_SECONDS
        before, since = "", time.monotonic()
        while time.monotonic() < end:
            now = self._call("capture-pane", "-p").rstrip()
            if now != before:
                before, since = now, time.monotonic()
            elif typed in now and now.endswith(ends) and time.monotonic() - since > _QUIET_SECONDS:
                break
            time.sleep(0.05)
        return before

    def changed(self, before: str) -> str:
        """The screen once it shows something else than ``before``, and stands still."""
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end and self._call("capture-pane", "-p").rstrip() == before:
            time.sleep(0.05)
        return self.settled("", "")

    def close(self) -> None:
        self._call("kill-server")
