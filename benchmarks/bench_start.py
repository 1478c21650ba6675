"""What does opening a session cost, against importing the libraries under it?

Run with ``python benchmarks/bench_start.py``: CPU seconds of new processes, in turn, and their
medians as ratios to that of ``import datafusion, pyarrow``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

REPEATS = 9
PROGRAMS = {
    "import datafusion, pyarrow": "import datafusion, pyarrow",
    "bf.connect(model)": (
        "import blendfusion as bf\n"
        "bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress='off')"
    ),
    'blendfusion query "SELECT 1"': (
        "from blendfusion.apps.cli.main import main\nmain(['query', 'SELECT 1', '--cache', 'off'])"
    ),
}
CLOCK = "\nimport sys, time\nprint(time.process_time(), file=sys.stderr)"


def seconds(program: str) -> float:
    """The CPU seconds of a process that runs ``program``."""
    done = subprocess.run(
        [sys.executable, "-c", program + CLOCK], capture_output=True, text=True, check=True
    )
    return float(done.stderr.split()[-1])


def main() -> None:
    for program in PROGRAMS.values():
        seconds(program)  # writes the bytecode
    rounds = [[seconds(program) for program in PROGRAMS.values()] for _ in range(REPEATS)]
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    for name, median in zip(PROGRAMS, medians, strict=True):
        print(f"{name:30} {median:.2f} s  {median / medians[0]:.2f}")


if __name__ == "__main__":
    main()
