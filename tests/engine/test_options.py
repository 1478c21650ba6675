"""Options: their declarations match the values that they take, and the documentation."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.options import OptionArguments, Options, about


@pytest.mark.parametrize("option", fields(Options), ids=lambda option: option.name)
def test_every_option_says_what_it_is_and_takes_no_more(option: object) -> None:
    name, default = option.name, option.default  # type: ignore[attr-defined]
    spec = about(option)  # type: ignore[arg-type]
    assert spec.doc.endswith(".")
    assert Options().with_(**{name: default}) == Options()
    with pytest.raises(bf.OptionError, match=f"option {name}=.* is not possible"):
        Options().with_(**{name: object()})
    for choice in spec.choices:
        assert getattr(Options().with_(**{name: choice}), name) == choice
    if spec.least is not None:
        assert spec.unit
        assert getattr(Options().with_text(name, str(spec.least)), name) == spec.least
        with pytest.raises(bf.OptionError, match=f"at least {spec.least}"):
            Options().with_(**{name: spec.least - 1})
        with pytest.raises(bf.OptionError, match="is a whole number"):
            Options().with_(**{name: True})


def test_a_type_checker_knows_the_options() -> None:
    declared = {option.name: option.type for option in fields(Options)}
    assert {n: t.__forward_arg__ for n, t in OptionArguments.__annotations__.items()} == declared


USE = """
import blendfusion as bf

bf.connect(cach=None)
bf.connect(on_error="rise")
bf.connect(concurrency="many")
bf.connect(on_error="raise", concurrency=4, progress="off")
bf.llm_filter("Is it good?", "text", modle="x")
bf.nonsense
"""


@pytest.mark.long
def test_a_type_checker_catches_wrong_options(tmp_path: Path) -> None:
    script = tmp_path / "use.py"
    script.write_text(USE, "utf-8")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--no-error-summary"]
    found = subprocess.run([*command, script], capture_output=True, text=True, timeout=300).stdout
    assert [int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line] == [
        4,
        5,
        6,
        8,
        9,
    ]


def test_set_reaches_a_model_that_is_loaded() -> None:
    url = "openai:m@http://127.0.0.1:9/v1"
    session = bf.connect(url, cache=None)
    assert session.model.batch_size == 8 * 16
    session.sql("SET blendfusion.concurrency = 2")
    assert session.model.batch_size == 8 * 2
    session.sql("SET blendfusion.chunk_rows = 2")
    model = session.model
    session.sql("SET blendfusion.chunk_rows = 3")
    assert session.model is model


def test_help_tells_them_all() -> None:
    assert all(f"{option.name}: " in (Options.__doc__ or "") for option in fields(Options))
