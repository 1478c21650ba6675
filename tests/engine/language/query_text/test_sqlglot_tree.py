"""Queries are parsed by sqlglot as it is, which may be compiled: pip install "sqlglot[c]"."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest
from module_imports import FILES
from scripts import Counted
from sqlglot import exp, parse_one

from blendfusion.language.query_text.sqlglot_tree import stop_of, tree_of

INTERPRETED = {"sqlglot.tokens.Tokenizer"}
"""The classes of sqlglot that are in no build compiled."""


def _inherited(path: Path) -> set[str]:
    """The classes of sqlglot that a module's classes inherit from, with their modules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlglot")
        for alias in node.names
    }
    bases = (b for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for b in node.bases)
    names = (ast.unparse(base) for base in bases)
    return {known[first] for name in names if (first := name.partition(".")[0]) in known}


def test_no_class_inherits_from_a_class_that_may_be_compiled() -> None:
    found = {module: _inherited(path) for module, path in FILES.items()}
    assert {name for names in found.values() for name in names} == INTERPRETED


@pytest.mark.parametrize(
    ("query", "stops"),
    [
        ("SELECT x FROM t ORDER BY x DESC", [31]),
        ("SELECT x FROM t ORDER BY x DESC NULLS FIRST, y desc, z ASC, u", [51]),
        ("SELECT array_agg(x ORDER BY y DESC) AS desc FROM t ORDER BY 1 -- DESC", [34]),
        ("SELECT desc FROM t ORDER BY desc, desc DESC LIMIT 1", [43]),
        ("SELECT x FROM t ORDER BY x ASC /* sqlglot.meta stop=z */", []),
    ],
)
def test_each_desc_knows_its_place(query: str, stops: list[int]) -> None:
    tree = tree_of(query)
    assert tree is not None
    found = [stop_of(key) for key in tree.find_all(exp.Ordered)]
    assert sorted(stop for stop in found if stop is not None) == stops


def test_a_comment_for_sqlglot_changes_no_query() -> None:
    counted = Counted(lambda call: 1).add("t", {"x": ["a", None]})
    sql = "SELECT x FROM t ORDER BY llm_int('q', x) ASC /* sqlglot.meta stop={} */, x"
    plain = counted.session.sql(sql.format("")).to_pydict()
    assert all(counted.session.sql(sql.format(s)).to_pydict() == plain for s in ("z", "3", "1.5"))


def test_what_sqlglot_logs_of_texts_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="sqlglot"):
        assert isinstance(tree_of("ALTER TABLE t FROB secret"), exp.Command)
        assert not caplog.records
        parse_one("ALTER TABLE t FROB secret")  # by the program itself
    assert len(caplog.records) == 1


def test_a_tilde_is_an_operator_of_two() -> None:
    tree = tree_of("SELECT a ~ b, a !~ (b), x[1] ~ 'c'")
    assert tree is not None
    assert len([*tree.find_all(exp.RegexpLike)]) == 3
