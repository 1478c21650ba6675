"""Every error in a query has a place in the text that the user wrote."""

from __future__ import annotations

import pyarrow as pa
import pytest

import blendfusion as bf

KINDS = """
SELECT CAST(['abc'] AS INT) FROM t WHERE llm_filter('q', x)
SELECT ['abc']::INT, llm_text('q', x) FROM t
SELECT llm_text('q', x), [DATE 'nope'] FROM t
SELECT llm_text('q', x), [TIMESTAMP '2020-13-45'] FROM t
SELECT llm_text('q', x), [INTERVAL 'foo'] FROM t
SELECT id FROM t WHERE id > ['abc'] AND llm_filter('q', x)
SELECT id FROM t WHERE id = ['abc']
CREATE TABLE z (a INT, [a] TEXT)
CREATE TABLE [t] (a INT)
CREATE VIEW [t] AS SELECT 1
WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT [a, a] FROM r) SELECT * FROM r
INSERT INTO u VALUES [(1, 'x')]
INSERT INTO u (id, y) VALUES (1, 'x'), [(1, 'x', 2)]
INSERT INTO u SELECT [id, x] FROM t WHERE llm_filter('q', x)
INSERT INTO u (id, [nope]) VALUES (1, 2)
INSERT INTO [nope] VALUES (1)
VALUES (1, 2), [(3)]
VALUES (1), ('a'), [(true)]
EXPLAIN FORMAT [FOO] SELECT id FROM t WHERE llm_filter('q', x)
EXPLAIN ANALYZE [FORMAT TREE] SELECT id FROM t WHERE llm_filter('q', x)
EXPLAIN SELECT [nope] FROM t WHERE llm_filter('q', x)
SELECT t.[nope], llm_text('q', x) FROM t
SELECT [nope](id) FROM t
SELECT [llm_nope](x) FROM t
SELECT [llm_text('q', x, foo => 1)] FROM t
SELECT [llm_classify(x)] FROM t
SELECT [llm_text(x, 'q')] FROM t
SELECT [llm_filter('q', x)] OVER () FROM t
SELECT [llm_text('Who is {zzz}?', x)] FROM t
SELECT [llm_extract(x, 'a NOPE')] FROM t
SELECT [sum(x)] FROM t
SELECT count([count(*)]) FROM t
SELECT id FROM t [WHERE count(*) > 1]
SELECT id FROM t WHERE [row_number() OVER (ORDER BY id)] > 1
SELECT [id], count(*) FROM t
SELECT [id] FROM t, u
SELECT id FROM t ORDER BY [9]
SELECT id FROM t GROUP BY [9]
SELECT id FROM t [LIMIT -1]
SELECT id FROM t [LIMIT 'a']
SELECT id FROM t [OFFSET -1]
SELECT id FROM t [UNION] SELECT id, x FROM t
SELECT id FROM t [UNION] SELECT b FROM t
SELECT ([SELECT id, x FROM t])
SELECT id FROM t WHERE [x AND b]
SELECT id FROM t [WHERE id]
SELECT [NOT id] FROM t
SELECT [-x] FROM t
SELECT id FROM t [HAVING id > 1]
SELECT id FROM t WHERE id = [$1]
SELECT id FROM t WHERE llm_filter('q', x) AND id = [$a]
SELECT id FROM t; [SELECT 1]
SELECT id FROM t JOIN u USING ([nope])
SELECT id FROM t NATURAL JOIN [nope]
WITH w AS (SELECT 1), [w] AS (SELECT 2) SELECT * FROM w
WITH w[(a, b)] AS (SELECT 1) SELECT * FROM w
SELECT * FROM t t, u [t]
SELECT [substr(x)] FROM t
SELECT st.[nope] FROM odd
SELECT [x.a] FROM t
SELECT CAST(x AS [NOPE]) FROM t
SELECT arrow_cast(id, ['Nope']) FROM t
SELECT [CAST(xs AS INT)] FROM odd
SELECT [CASE WHEN b THEN 1 ELSE xs END] FROM odd, t
SELECT [coalesce()] FROM t
SELECT [x LIKE 1] FROM t
SELECT [id IN (1, x, b)] FROM t
SELECT * EXCLUDE ([nope]) FROM t
SELECT [nope].* FROM t
SELECT [*]
SELECT rank() OVER [w] FROM t
SELECT rank() OVER (ORDER BY [nope]) FROM t
SELECT sum(id) OVER ([ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING]) FROM t
SELECT [DISTINCT] ON (id) x FROM t ORDER BY x
SELECT DISTINCT id FROM t [ORDER BY n]
SELECT * FROM [generate_series(1, 'a')]
SELECT * FROM [nope(1)]
SELECT * FROM llm_search(['nope'], 'a')
SELECT * FROM ['nope.parquet']
COPY t TO ['x.foo']
CREATE EXTERNAL TABLE z STORED AS [NOPE] LOCATION 'x'
DROP VIEW [nope]
DELETE FROM t WHERE [nope] = 1
UPDATE t SET [nope] = 1
DESCRIBE [nope]
SHOW [nope]
SET [datafusion.nope] = 1
EXECUTE [nope](1)
PREPARE p([NOPE]) AS SELECT 1
PREPARE p AS SELECT id FROM t WHERE [llm_filter($1, x)]
[GRANT] SELECT ON t TO u
SELECT [unnest(id)] FROM t
SELECT * FROM t [PIVOT] (sum(n) FOR id IN (1, 2))
SELECT [percentile_cont(2)] WITHIN GROUP (ORDER BY id) FROM t
SELECT id [COLLATE] nope FROM t
SELECT [grouping(id)] FROM t
SELECT [llm_int('q', x) = b] FROM t
SELECT [llm_filter('q', x) + 1] FROM t
SELECT EXISTS (SELECT [nope] FROM u) FROM t
SELECT array_agg(id ORDER BY [nope]) FROM t
""".strip().splitlines()
"""Texts that are wrong; the wrong part stands in brackets."""
AHEAD = "/* of\n2 */ "


@pytest.fixture(scope="module")
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    made.from_pydict({"id": [1], "x": ["a"], "n": [5], "b": [True]}, name="t")
    made.from_pydict({"id": [1], "y": ["p"], "m": [1]}, name="u")
    made.from_arrow(pa.table({"st": [{"a": 1}], "xs": [["a"]]}), name="odd")
    return made


@pytest.mark.parametrize("marked", KINDS)
def test_an_error_has_a_place(session: bf.Session, marked: str) -> None:
    start, stop = marked.index("["), marked.rindex("]") - 1
    for ahead in ("", AHEAD):
        text = ahead + marked.replace("[", "").replace("]", "")
        with pytest.raises((bf.QueryError, bf.ExecutionError)) as error:
            session.sql(text).collect()
        span = error.value.span
        assert span is not None
        assert text[span[0] : span[1]] == text[len(ahead) + start : len(ahead) + stop]
        assert span[0] == len(ahead) + start
        assert "{ expr" not in str(error.value)


def test_an_error_of_which_nothing_is_known_is_about_the_whole_statement() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    with pytest.raises(bf.QueryError) as error:
        session.sql("  SELECT lag(1) OVER (ORDER BY 1), approx_percentile_cont(2, 'a'), 1 ;")
    assert error.value.span is not None
