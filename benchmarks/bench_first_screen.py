"""What does the first screen of a large result cost, beside that of its first 40 rows?

    python benchmarks/bench_first_screen.py [--rows 20000,1000000]

Each line is the CPU time of ``blendfusion query 'SELECT * FROM t'`` on a terminal, with the start of
the process: the least of three runs.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="20000,1000000")
    counts = [int(count) for count in parser.parse_args().rows.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        few = _least(_table(Path(folder), 40))
        print(f"{40:>9,} rows  {few:5.2f} s")
        for count in counts:
            seconds = _least(_table(Path(folder), count))
            print(f"{count:>9,} rows  {seconds:5.2f} s  {seconds / few:4.2f} times")


def _table(folder: Path, rows: int) -> Path:
    file = folder / f"{rows}.csv"
    lines = (f"{n},{n % 7},a broken lamp and a late parcel {n}\n" for n in range(rows))
    file.write_text("id,kind,text\n" + "".join(lines), "utf-8")
    return file


def _least(table: Path) -> float:
    return min(_seconds(table) for _ in range(3))


def _seconds(table: Path) -> float:
    """The CPU time of the command and its threads."""
    code = "from blendfusion.apps.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "query", "SELECT * FROM t", "--table", f"t={table}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process, screen = pty.fork()
    if process == 0:
        os.execv(sys.executable, command)
    try:
        while os.read(screen, 1 << 16):
            pass
    except OSError:  # the end of a terminal
        pass
    os.waitpid(process, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
