"""A query is read once: what stages make of it has its tokens, and only what they write is read."""

from __future__ import annotations

import pytest
from golden import FOLDER, cases
from scripts import Counted
from sqlglot.tokenizer_core import Token
from sqlglot.tokens import Tokenizer

import blendfusion as bf
from blendfusion.language.query_text.source_map import edit, identity, part
from blendfusion.language.query_text.tokenizer import Sql, tokenize

MARK = "/* as it was written */"
"""Stands in each query: a text that holds it is the query, or was made of it."""
QUERIES = {
    "a call": "SELECT id FROM shops WHERE {} llm_filter('q', note)",
    "no call": "SELECT {} 'llm_map(' FROM shops",
    "calls in calls": "SELECT {} llm_map('q', llm_map('r', note)) FROM shops",
    "subqueries": "SELECT llm_map('q', note) FROM shops {} WHERE id IN (SELECT id FROM shops "
    "WHERE llm_filter('p', name)) AND EXISTS (SELECT 1 FROM shops WHERE llm_filter('r', name))",
    "options": "SELECT llm_map('q', note, options => {} (SELECT name FROM shops)) FROM shops",
    "common tables": "WITH c AS (SELECT llm_map('q', note) AS a FROM shops) "
    "SELECT {} * FROM c WHERE a = 'x' UNION ALL SELECT name FROM shops",
    "NULLs of an order": "SELECT id FROM shops {} ORDER BY llm_map('q', note) DESC, name DESC",
    "types beside columns": "SELECT id FROM shops WHERE {} llm_map('q', note) = stars",
    "parameters": "SELECT id FROM shops WHERE llm_filter($q, note) AND {} id > $i",
    "lists": "SELECT llm_map('q', e) FROM shops {} CROSS JOIN UNNEST(shops.tags) AS u(e)",
    "EXPLAIN": "EXPLAIN VERBOSE {} SELECT id FROM shops WHERE llm_filter('q', note)",
    "PREPARE": "PREPARE p(BIGINT) AS {} SELECT llm_map('q', note) FROM shops WHERE id = $1",
    "SET": "SET {} blendfusion.progress = 'off'",
    "SHOW": "SHOW {} TABLES",
    "settings": "SELECT {} name FROM information_schema.df_settings LIMIT 1",
    "CREATE": "CREATE OR REPLACE VIEW v AS {} SELECT id FROM shops WHERE llm_filter('q', note)",
    "blendsql": "SELECT id FROM shops WHERE {{{{LLMMap('q', note)}}}} > 3 AND {} stars > 1",
    "blendsql 2": "SELECT {{{{LLMQA('q', (SELECT name, note FROM shops {}))}}}}",
    "blendsql 3": "SELECT {} id FROM shops WHERE name = {{{{LLMQA('q')}}}} AND stars = ?",
    "suql": "SELECT id FROM shops {} WHERE answer(note, 'q') = 'Yes'",
    "snowflake": "SELECT id FROM shops WHERE {} AI_FILTER(PROMPT('Is {{0}} old?', note))",
    "bigquery": "SELECT {} AI.GENERATE_INT(('q ', note)).result FROM shops",
    "databricks": "SELECT id FROM shops WHERE {} ai_classify(note, ARRAY('a', 'b')) = 'a'",
    "mysql": "SELECT {} id FROM shops WHERE llm_filter('q', note) AND note LIKE 'o%'",
}
GIVEN: dict[str, object] = {
    "parameters": {"q": "Is it old?", "i": 0},
    "blendsql 3": [3],
}


@pytest.fixture(scope="module")
def shops() -> Counted:
    def script(call: bf.Request) -> object:
        options = call.constraint.options
        known = {"boolean": True, "integer": 3}
        return options[0] if options else known.get(call.constraint.kind, "old")

    one = {"id": [1], "name": ["a"], "note": ["old"], "stars": [3], "tags": [["x"]]}
    return Counted(script).add("shops", one)


@pytest.mark.parametrize("entry", QUERIES)
def test_a_query_is_tokenised_once(
    entry: str, shops: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = entry.split()[0]
    known = ("blendsql", "suql", "snowflake", "bigquery", "databricks", "mysql")
    query, read, scan = QUERIES[entry].format(MARK), [], Tokenizer.tokenize

    def counting(self: Tokenizer, sql: str) -> list[Token]:
        read.append(sql)
        return scan(self, sql)

    monkeypatch.setattr(Tokenizer, "tokenize", counting)
    frame = shops.session.sql(
        query,
        dialect=dialect if dialect in known else None,
        param_values=GIVEN.get(entry),  # type: ignore[arg-type]
    )
    frame.collect()
    marked = [sql for sql in read if "as it was" in sql]
    assert marked[0] == query
    assert len(marked) == 1


def _shape(tokens: list[Token]) -> list[tuple[object, str, int, int, int]]:
    return [(t.token_type, t.text, t.line, t.start, t.end) for t in tokens]


@pytest.mark.parametrize("dialect", ["blendsql", "suql", "mysql", "snowflake", "bigquery"])
def test_tokens_of_a_translation_are_those_of_its_text(dialect: str, shops: Counted) -> None:
    for case in cases(FOLDER / "dialects" / f"{dialect}.txt"):
        try:
            ours = shops.session.translated(case.given, dialect)
        except bf.BlendFusionError:
            continue
        assert _shape(tokenize(ours)) == _shape(tokenize(str(ours))), case.given


@pytest.mark.parametrize(
    ("start", "end", "new"),
    [
        (7, 8, "'it''s'\n, b"),  # a value
        (7, 8, ""),  # nothing
        (7, 7, "DISTINCT\n"),
        (8, 8, "yz"),  # one word with what is before it
        (10, 12, ""),  # inside a name
        (21, 21, " -- more\n"),
        (0, 31, "SELECT 1"),
    ],
)
def test_tokens_of_an_edited_text_are_those_of_the_text(start: int, end: int, new: str) -> None:
    text = Sql("SELECT x,\n y FROM t\nWHERE x = 'a b'")
    changed = edit(text, [(start, end, new)])
    again = changed.then(edit(changed.sql, [(0, 0, "/* 1 */ ")]))
    for sql in (changed.sql, again.sql, part(text, 11, 20), identity(text).sql):
        assert _shape(sql.tokens) == _shape(tokenize(str(sql)))


DOLLARS = {
    "f($1,$2)": ["f", "(", "$1", ",", "$2", ")"],
    "$a-$b": ["$a", "-", "$b"],
    "($1,$2),($3,$left)": ["(", "$1", ",", "$2", ")", ",", "(", "$3", ",", "$left", ")"],
    "$1::int": ["$1", "::", "int"],
    "$$a $1,$2 b$$": ["a $1,$2 b"],
    "$$a$$,$$b$$": ["a", ",", "b"],
    "$t$ x,$1 $t$,$2": [" x,$1 ", ",", "$2"],
    "'$5,$6' || \"a$b,$c\"": ["$5,$6", "||", "a$b,$c"],
    "a$b -- $1,$2": ["a$b"],
    "e'$1,$2'": ["$1,$2"],
}


@pytest.mark.parametrize("sql", DOLLARS)
def test_dollars_of_parameters_and_of_strings(sql: str) -> None:
    tokens = tokenize(sql)
    assert [token.text for token in tokens] == DOLLARS[sql]
    assert sql[tokens[0].start : tokens[0].end + 1] in sql.split(" --")[0]


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("x IN ($1,$2)", ["a", "b"]),
        ("x IN ($lo,$hi)", {"lo": "a", "hi": "b"}),
        ("id BETWEEN $1-$2 AND $1+$2", [2, 1]),
        ("(id,x) = ($1,$2) OR id > 1 OR x < $2", [1, "b"]),
    ],
)
def test_parameters_without_blanks_beside_a_call(condition: str, values: object) -> None:
    session = bf.connect(bf.ScriptedModel(lambda _: True), cache=None, progress="off")
    session.from_pydict({"id": [1, 2], "x": ["a", "b"]}, "t")
    query = f"SELECT id FROM t WHERE llm_filter('q', x) AND ({condition}) ORDER BY id"
    assert session.sql(query, param_values=values).to_pydict()["id"] == [1, 2]
