"""``bf.register``: the functions in a context that is no session."""

from __future__ import annotations

import pyarrow as pa
from datafusion import SessionContext
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "x": ["good tea", "bad tea", None, "good milk", "good tea", " "],
        "n": [3, 1, 4, 1, 5, 9],
    }
)


def test_a_plain_context_gives_the_same_answers() -> None:
    db = Counted(hashed).add("t", TABLE)
    context = SessionContext()
    bf.register(context, bf.ScriptedModel(hashed))
    context.from_arrow(TABLE, name="t")
    for sql in (
        "SELECT id FROM t WHERE llm_filter('q', x)",
        "SELECT id, llm_map('m', x) AS m FROM t",
        "SELECT id, llm_classify(x, ['a', 'b']) AS c FROM t",
        "SELECT n, llm_qa('q', x) AS a FROM t GROUP BY n",
    ):
        assert unordered(tuples(context.sql(sql).to_arrow_table())) == unordered(db.rows(sql)), sql
