"""SemBench's movie queries in our SQL, their gold results, and a model that knows every answer.

The model looks answers up by the text of a review; the session that asks it has no column that
gives a label away. Gold SQL is the data set's own where the slice has it, else in the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

FOLDER = "sembench_movies"

POSITIVE = "llm_filter('Is this movie review positive?', {})"
P, P_1, P_2 = (POSITIVE.format(x) for x in ("review_text", "a.review_text", "b.review_text"))
SCORE = "llm_int('How much did the critic like the movie, from 1 to 5?', review_text)"

PAIRS = """
SELECT a.movie_id, a.review_id AS review_id_1, b.review_id AS review_id_2
FROM reviews AS a JOIN reviews AS b ON a.movie_id = b.movie_id AND a.review_id <> b.review_id
WHERE a.movie_id = '{movie}' AND """
OPPOSITE = f"{PAIRS} {P_1} <> {P_2}"
GOLD_OPPOSITE = f"{PAIRS} a.score_sentiment <> b.score_sentiment"

SQL = {
    "Q1": f"SELECT review_id FROM reviews WHERE {P} LIMIT 5",
    "Q2": f"SELECT review_id FROM reviews WHERE movie_id = '{{movie}}' AND {P} LIMIT 5",
    "Q3": "SELECT count(*) AS positive_review_cnt FROM reviews "
    f"WHERE movie_id = '{{movie}}' AND {P}",
    "Q4": f"SELECT avg(CASE WHEN {P} THEN 1.0 ELSE 0.0 END) AS positivity_ratio "
    "FROM reviews WHERE movie_id = '{movie}'",
    "Q5": f"{PAIRS} (({P_1} AND {P_2}) OR NOT ({P_1} OR {P_2})) LIMIT 10",
    "Q6": OPPOSITE + " LIMIT 10",
    "Q7": OPPOSITE,
    "Q8": f"SELECT CASE WHEN {P} THEN 'POSITIVE' ELSE 'NEGATIVE' END AS score_sentiment, "
    "count(*) AS count FROM reviews WHERE movie_id = '{movie}' GROUP BY score_sentiment",
    "Q9": f"SELECT review_id, {SCORE} AS score FROM reviews WHERE movie_id = '{{movie}}'",
    "Q10": f"SELECT movie_id, avg({SCORE}) AS movie_score FROM reviews GROUP BY movie_id",
}
"""The queries; those that ask for any rows of a result have a LIMIT."""

_BY_LABELS = "llm_join(a.review_text, b.review_text, how => '{how}', labels => ['POSITIVE', 'NEGATIVE']{match})"
_OPPOSITE = "the reviews express opposite sentiments"
SQL |= {
    "Q5 by labels": PAIRS
    + _BY_LABELS.format(how="the reviews express the same sentiment", match=", match => 'same'")
    + " LIMIT 10",
    "Q6 by labels": PAIRS
    + _BY_LABELS.format(how=_OPPOSITE, match=", match => 'different'")
    + " LIMIT 10",
    "Q7 by labels": PAIRS + _BY_LABELS.format(how=_OPPOSITE, match=", match => 'different'"),
    "Q7 by a sample": PAIRS + _BY_LABELS.format(how=_OPPOSITE, match=""),
}
"""Q5 to Q7 once more, as joins by meaning: the user says which labels match, or sampled pairs do.
"""

GOLD = {
    "Q1": "SELECT review_id FROM reviews WHERE score_sentiment = 'POSITIVE'",
    "Q2": "SELECT review_id FROM reviews "
    "WHERE movie_id = '{movie}' AND score_sentiment = 'POSITIVE'",
    "Q3": "SELECT count(*) AS positive_review_cnt FROM reviews "
    "WHERE movie_id = '{movie}' AND score_sentiment = 'POSITIVE'",
    "Q4": "SELECT avg(CASE WHEN score_sentiment = 'POSITIVE' THEN 1.0 ELSE 0.0 END) "
    "FROM reviews WHERE movie_id = '{movie}'",
    "Q5": f"{PAIRS} a.score_sentiment = b.score_sentiment",
    "Q6": GOLD_OPPOSITE,
    "Q7": GOLD_OPPOSITE,
    "Q8": "SELECT score_sentiment, count(*) AS count FROM reviews "
    "WHERE movie_id = '{movie}' GROUP BY score_sentiment",
    "Q9": "SELECT review_id, score FROM reviews JOIN scores USING (review_text) "
    "WHERE movie_id = '{movie}'",
    "Q10": "SELECT movie_id, avg(score) FROM reviews JOIN scores USING (review_text) "
    "GROUP BY movie_id",
}
"""The results from the labels, without LIMIT. Q9 and Q10 have no labels: see ``_SCORES``."""

_OWN_GOLD = ("Q9", "Q10")
"""Queries whose gold SQL in the data set compares with something else (the audience's score)."""

_SCORES = """
SELECT review_text, min(CASE
    WHEN original_score = '5/5' THEN 5
    WHEN score_sentiment = 'POSITIVE' THEN 4
    WHEN original_score = '1/5' THEN 1
    ELSE 2
  END) AS score
FROM reviews GROUP BY review_text"""
"""Scores from 1 to 5 for every text: the critic's own where it is an extreme, else by sentiment."""

_HIDDEN = ("score_sentiment", "review_state", "original_score")


@dataclass(frozen=True, slots=True)
class MovieQuery:
    """A query over the slice.

    ``bound``: the distinct texts, in file order, whose labels give the result. ``texts``: all
    distinct texts that the cheap predicates leave. ``naive``: calls of a system that asks for each
    row, or each pair of rows, that they leave.
    """

    name: str
    sql: str
    gold: str
    bound: int
    texts: int
    naive: int

    @property
    def is_any(self) -> bool:
        """Whether any rows of the gold result will do, as many as the LIMIT says."""
        return " LIMIT " in self.sql


class Movies:
    """The slice in the folder ``data``: ``session`` and its ``model`` see no labels, ``gold`` sees
    all."""

    def __init__(self, data: Path) -> None:
        folder = data / FOLDER
        reviews = pq.read_table(folder / "reviews.parquet")
        self.gold = SessionContext()
        self.gold.from_arrow(reviews, name="reviews")
        self.gold.register_parquet("movies", str(folder / "movies.parquet"))
        self.gold.from_arrow(self.gold.sql(_SCORES).to_arrow_table(), name="scores")
        self._given = {
            row["query_id"]: row for row in pq.read_table(folder / "queries.parquet").to_pylist()
        }
        self.model = bf.ScriptedModel(self._script())
        self.session = bf.connect(self.model, progress="off")
        self.session.from_arrow(reviews.drop_columns(list(_HIDDEN)), name="reviews")

    def _script(self) -> Callable[[bf.Request], Value | None]:
        labelled = self.gold.sql(
            "SELECT DISTINCT review_text, score_sentiment, score "
            "FROM reviews JOIN scores USING (review_text)"
        ).to_pylist()
        known = {row["review_text"]: row for row in labelled}
        assert len(known) == len(labelled), "a text with two labels"

        def answer(call: bf.Request) -> Value:
            row = known[str(call.values[0])]
            if call.constraint.kind == "boolean" and len(call.values) == 2:
                other = known[str(call.values[1])]
                return bool(row["score_sentiment"] != other["score_sentiment"])
            if call.constraint.kind == "boolean":
                return bool(row["score_sentiment"] == "POSITIVE")
            return (
                int(row["score"])
                if call.constraint.kind == "integer"
                else str(row["score_sentiment"])
            )

        return answer

    def queries(self) -> list[MovieQuery]:
        """The ten queries over this slice, in their order, and Q5 to Q7 in other words."""
        return [self.query(name) for name in SQL]

    def asked(self, query: MovieQuery) -> tuple[pa.Table, int]:
        """The result of a query, and the number of values that it put to the model."""
        self.model.calls.clear()
        result = self.session.sql(query.sql).to_arrow_table()
        return result, len(self.model.calls)

    def expected(self, query: MovieQuery) -> pa.Table:
        """The gold result; all of it, where any rows will do."""
        return self.gold.sql(query.gold).to_arrow_table()

    def query(self, name: str) -> MovieQuery:
        """One of them, for the movie that it is about here."""
        form, name = name, name.split()[0]
        movie = self._movie(name)
        gold = GOLD[name].format(movie=movie)
        if name in self._given and name not in _OWN_GOLD:
            gold = self._given[name]["gold_sql"].rstrip("; ")
        texts = self._texts(None if name in ("Q1", "Q10") else movie)
        pairs = name in ("Q5", "Q6", "Q7")
        naive = len(texts) * (len(texts) - 1) if pairs else len(texts)
        return MovieQuery(
            name=form,
            sql=SQL[form].format(movie=movie),
            gold=gold,
            bound=_bound(name, texts),
            texts=len(set(texts)),
            naive=naive,
        )

    def _movie(self, name: str) -> str:
        """The movie that the data set names, else the one with most reviews; for Q5-Q7 and Q9,
        which name another one, with most reviews of its rarer sentiment."""
        given = self._given.get(name)
        if given is not None and given["movie_id"]:
            return str(given["movie_id"])
        positive = "sum(CASE WHEN score_sentiment = 'POSITIVE' THEN 1 ELSE 0 END)"
        most = (
            f"least({positive}, count(*) - {positive})"
            if name in ("Q5", "Q6", "Q7", "Q9")
            else "count(*)"
        )
        found = self.gold.sql(
            f"SELECT movie_id FROM reviews GROUP BY movie_id ORDER BY {most} DESC, movie_id LIMIT 1"
        )
        return str(found.to_pylist()[0]["movie_id"])

    def _texts(self, movie: str | None) -> list[tuple[str, bool]]:
        """The texts of a movie, or of all, in file order, with whether they are positive."""
        rows = self.gold.sql(
            "SELECT movie_id, review_text, score_sentiment FROM reviews"
        ).to_pylist()
        return [
            (row["review_text"], row["score_sentiment"] == "POSITIVE")
            for row in rows
            if movie is None or row["movie_id"] == movie
        ]


def _bound(name: str, texts: list[tuple[str, bool]]) -> int:
    positive = negative = 0
    seen: set[str] = set()
    for text, is_positive in texts:
        seen.add(text)
        positive += is_positive
        negative += not is_positive
        same = positive * (positive - 1) + negative * (negative - 1)
        if (
            (name in ("Q1", "Q2") and positive == 5)
            or (name == "Q5" and same >= 10)
            or (name == "Q6" and 2 * positive * negative >= 10)
        ):
            break
    return len(seen)
