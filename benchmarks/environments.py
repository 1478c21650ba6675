"""Virtual environments for programs that are compared with, apart from the project's own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

LLAMA = "llama-cpp-python"


@dataclass(frozen=True, slots=True)
class Environment:
    """What is installed into a folder: each tuple by a call of pip of its own."""

    name: str
    installs: tuple[tuple[str, ...], ...]

    def python(self, folder: Path) -> Path:
        """The interpreter, after everything was installed; made once."""
        home = folder / self.name
        python, done = home / "bin" / "python", home / "installed"
        said = repr(self.installs)
        if not done.is_file() or done.read_text() != said:
            print(f"installing {self.name} into {home}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
            for what in self.installs:
                subprocess.run([python, "-m", "pip", "install", "--quiet", *what], check=True)
            done.write_text(said)
        return python


def _llama(extra: str = "") -> str:
    """The llama.cpp of this environment. Where pip built it, pip has kept the wheel."""
    return f"{LLAMA}{extra}=={version(LLAMA)}"


SERVER = Environment("server", ((_llama("[server]"),),))

# With polars 2 its rows do not stay beside their values.
BLENDSQL = Environment("blendsql-0.1.28", (("blendsql==0.1.28", "polars[pyarrow]<2", _llama()),))

# All that LOTUS declares, but sentence-transformers, with which torch would come: see
# peer_lotus.py.
LOTUS = Environment(
    "lotus-1.2.4",
    (
        ("--no-deps", "lotus-ai==1.2.4"),
        (
            "backoff<3",
            "faiss-cpu<2",
            "litellm>=1.80",
            "numpy<2",
            "pandas<3",
            "pydantic<3",
            "tiktoken<1",
            "tqdm<5",
            "tokenizers",
            "pillow",
        ),
    ),
)
