"""Rules that put joins elsewhere never put one above a sort that a LIMIT counts on."""

from __future__ import annotations

from zlib import crc32

import pytest

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

ROWS = 40


def answer(call: bf.Request) -> Value:
    number = crc32("|".join(v or "" for v in call.values).encode()) >> 3
    return number % 2 == 0 if call.constraint.kind == "boolean" else "abc"[number % 3]


def session(**options: object) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(answer), cache=None, **options)
    mixed = [crc32(str(i).encode()) >> 3 for i in range(ROWS)]
    texts = [f"x{n % 17}" for n in mixed]
    made.from_pydict({"id": list(range(ROWS)), "n": [n % 23 for n in mixed], "x": texts}, name="t")
    made.from_pydict({"uid": list(range(0, ROWS, 2)), "y": texts[::2]}, name="u")
    made.from_pydict({"vid": list(range(0, ROWS, 3)), "m": mixed[::3]}, name="v")
    return made


TAILS = (" ORDER BY n DESC, id LIMIT 3", " ORDER BY n, id DESC LIMIT 2 OFFSET 1")
F = "llm_map('r', {}) IN ('a', 'b')"
QUERIES = (
    # semi_join_reduction: the block asks below a sort
    f"SELECT id, n FROM t WHERE {F.format('x')} AND id IN (SELECT uid FROM u)",
    "SELECT id, n FROM t WHERE llm_filter('q', x) AND EXISTS (SELECT 1 FROM u WHERE uid = id)",
    "SELECT id, n FROM t WHERE llm_filter('q', x) AND id NOT IN (SELECT vid FROM v)",
    # join_tree_reduction: a cheap join above joins on answers
    "SELECT id, n FROM t JOIN u ON llm_map('r', x) = llm_map('r', y) AND id = uid "
    "JOIN v ON id < vid AND vid = 9",
    "SELECT id, n FROM t JOIN u ON id = uid JOIN v ON llm_map('r', x) = llm_map('r', y) "
    "AND vid = uid",
    # cheap_joins_first
    "SELECT id, n FROM t JOIN u ON llm_classify(x, ['a', 'b', 'c']) = llm_map('r', y) AND id = uid "
    "WHERE id IN (SELECT vid FROM v)",
    "SELECT id, n FROM t LEFT JOIN u ON llm_join(x, y) AND id = uid LEFT SEMI JOIN v ON id = vid",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("inner", [False, True], ids=["outside", "inside"])
def test_a_limit_takes_the_first_rows_of_the_order(query: str, inner: bool) -> None:
    for tail in TAILS:
        sql = query + tail
        if inner:  # the rows of the limit meet one more join
            order = tail.split(" LIMIT")[0]
            sql = (
                f"SELECT s.id, s.n FROM ({sql}) s JOIN u ON s.id % 7 = u.uid % 7 "
                f"WHERE llm_filter('s', u.y) GROUP BY s.id, s.n{order}"
            )
        plain = session(planner=False).sql(sql).to_pylist()
        assert session().sql(sql).to_pylist() == plain
        assert session(first_chunk_rows=1, chunk_rows=2).sql(sql).to_pylist() == plain
