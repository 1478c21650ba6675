"""What does opening a session cost, against importing the libraries under it?

Run with ``python benchmarks/bench_start.py``: CPU seconds (user and system) of new processes, in
turn, and their medians as ratios to that of ``import datafusion, pyarrow``. The bytecode is kept, as
that of an installed package is.
"""

from __future__ import annotations

import os
import resource
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
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(program: str) -> float:
    """The CPU seconds of a process that runs ``program``, from its start to its end."""
    command = [sys.executable, "-c", program]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    for program in PROGRAMS.values():
        seconds(program)  # writes the bytecode
    rounds = [[seconds(program) for program in PROGRAMS.values()] for _ in range(REPEATS)]
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    for name, median in zip(PROGRAMS, medians, strict=True):
        print(f"{name:30} {median:.2f} s  {median / medians[0]:.2f}")


if __name__ == "__main__":
    main()
