"""A real browser without a window: what it makes of a page, and what it complains about."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)


@dataclass(frozen=True)
class Opened:
    """``dom``: the page as it stands once it is loaded. ``console``: what the browser said of
    it."""

    dom: str
    console: list[str]


@cache
def browser() -> str | None:
    """The path of a Chromium, if this machine has one that starts."""
    for name in NAMES:
        found = shutil.which(name)
        if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    return None


def opened(page: Path) -> Opened:
    """``page`` loaded in a browser of its own."""
    found = browser()
    assert found is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [found, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    said = done.stderr.decode(errors="replace")
    return Opened(done.stdout.decode(), re.findall(r"CONSOLE[:(].*", said))
