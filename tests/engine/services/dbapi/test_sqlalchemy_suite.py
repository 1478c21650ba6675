"""SQLAlchemy's own suite for dialects, over ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[3] / "support" / "sqlalchemy_suite"
_SETTINGS = (
    "[sqla_testing]\nrequirement_cls=suite_requirements:Requirements\nprofile_file=profiles.txt\n"
)


@pytest.mark.skipif(
    not os.environ.get("BLENDFUSION_SUITES"), reason="minutes: `make nightly` runs it"
)
def test_the_dialect_passes_the_suite(tmp_path: Path) -> None:
    shutil.copy(SUITE / "suite_requirements.py", tmp_path)
    shutil.copy(SUITE / "suite_conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_suite.py").write_text("from sqlalchemy.testing.suite import *\n")
    (tmp_path / "setup.cfg").write_text(_SETTINGS)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
            *("-p", "sqlalchemy.testing.plugin.pytestplugin", "test_suite.py"),
            *("--dburi", "blendfusion:///?cache=none"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-300:]
    assert int(passed[1]) > 400, done.stdout[-300:]
