"""Kinds of materialised views over two tables, random changes of these, and a model that answers by
digests of what it reads."""

from __future__ import annotations

import random
from hashlib import sha256
from typing import Any

import pyarrow as pa

import blendfusion as bf

GOOD = "llm_filter('Is it good?', text)"
BAD = "llm_filter('Is it broken?', text)"
TOPIC = "llm_classify(text, ['size', 'colour', 'price'])"
DAYS = "llm_int('How many days?', text)"

KINDS = {
    "filter": f"SELECT id, text FROM reviews WHERE {GOOD}",
    "no row": f"SELECT id FROM reviews WHERE stars > 9 AND {GOOD}",
    "column": "SELECT id, llm_text('In one word', text) AS word FROM reviews",
    "number": f"SELECT id, {DAYS} AS days FROM reviews",
    "cheap predicate": f"SELECT id FROM reviews WHERE stars < 3 AND {GOOD}",
    "not": f"SELECT id FROM reviews WHERE NOT {GOOD}",
    "or": f"SELECT id FROM reviews WHERE stars = 5 OR {GOOD}",
    "filter and column": f"SELECT id, {TOPIC} AS topic FROM reviews WHERE {GOOD}",
    "topics": f"SELECT {TOPIC} AS topic, count(*) AS n FROM reviews GROUP BY 1 ORDER BY 1",
    "topics with many": f"SELECT {TOPIC} AS t, count(*) AS n FROM reviews GROUP BY 1 HAVING count(*) > 1 ORDER BY 1",
    "distinct": f"SELECT DISTINCT {TOPIC} AS topic FROM reviews ORDER BY 1",
    "sum": f"SELECT product, sum({DAYS}) AS days FROM reviews GROUP BY product ORDER BY 1",
    "mean of all": f"SELECT avg({DAYS}) AS days FROM reviews",
    "count": f"SELECT count(*) AS n FROM reviews WHERE {GOOD}",
    "filter clause": f"SELECT product, count(*) FILTER (WHERE {GOOD}) AS n FROM reviews GROUP BY product ORDER BY 1",
    "rollup": f"SELECT product, {TOPIC} AS topic, count(*) AS n FROM reviews GROUP BY ROLLUP (product, llm_classify(text, ['size', 'colour', 'price'])) ORDER BY 1, 2",
    "case": f"SELECT id, CASE WHEN stars > 3 THEN 'fine' WHEN {GOOD} THEN 'good' ELSE 'bad' END AS v FROM reviews",
    "join": f"SELECT r.id, p.category FROM reviews r JOIN products p ON r.product = p.product WHERE {GOOD.replace('text', 'r.text')}",
    "left join": f"SELECT p.product, r.id FROM products p LEFT JOIN reviews r ON r.product = p.product AND {GOOD.replace('text', 'r.text')} ORDER BY 1, 2",
    "in": "SELECT id FROM reviews WHERE product IN (SELECT product FROM products WHERE llm_filter('Is it heavy?', about))",
    "answers joined": "SELECT r.id, p.product FROM reviews r JOIN products p ON llm_classify(r.text, ['bags', 'lamps']) = p.category ORDER BY 1, 2",
    "union all": f"SELECT id FROM reviews WHERE {GOOD} UNION ALL SELECT id FROM reviews WHERE {BAD} ORDER BY 1",
    "except": f"SELECT id FROM reviews EXCEPT SELECT id FROM reviews WHERE {GOOD} ORDER BY 1",
    "intersect": f"SELECT id FROM reviews WHERE {GOOD} INTERSECT SELECT id FROM reviews WHERE {BAD} ORDER BY 1",
    "with": f"WITH good AS (SELECT * FROM reviews WHERE {GOOD}) SELECT product, count(*) AS n FROM good GROUP BY 1 ORDER BY 1",
    "numbers of rows": f"SELECT id, row_number() OVER (PARTITION BY product ORDER BY {DAYS}, id) AS n FROM reviews ORDER BY id",
    "qa": "SELECT product, llm_qa('What do they say?', text ORDER BY id) AS said FROM reviews GROUP BY product ORDER BY 1",
    "scalar subquery": f"SELECT p.product, (SELECT count(*) FROM reviews r WHERE r.product = p.product AND {GOOD.replace('text', 'r.text')}) AS n FROM products p ORDER BY 1",
    "whole rows": f"SELECT * FROM reviews WHERE {GOOD}",
    "struct": "SELECT id, llm_extract(text, 'size INT, colour TEXT') AS found FROM reviews",
    "groups by meaning": "SELECT id, llm_group(text, into => 3, name => 'topics') AS g FROM reviews ORDER BY id",
    "sizes of groups": "SELECT llm_group(text, into => 3, name => 'topics') AS g, count(*) AS n FROM reviews GROUP BY 1 ORDER BY 1",
    "entities": "SELECT id, llm_same(text, name => 'texts') AS e FROM reviews ORDER BY id",
    "join by meaning": "SELECT r.id, p.product FROM reviews r JOIN products p ON llm_join(r.text, p.about) ORDER BY 1, 2",
    "search": f"SELECT id, text FROM llm_search('notes', 'red torn', k => 100) WHERE {GOOD} ORDER BY id",
    "groups without a name": "SELECT id, llm_group(text, into => 2) AS g FROM reviews ORDER BY id",
    "no model": "SELECT product, count(*) AS n FROM reviews GROUP BY product ORDER BY 1",
    # --- what is asked depends on what is known: the most is bounded ---
    "two filters": f"SELECT id FROM reviews WHERE {GOOD} AND {BAD}",
    "join of two": f"SELECT r.id, p.category FROM reviews r JOIN products p ON r.product = p.product WHERE {GOOD.replace('text', 'r.text')} AND llm_filter('Is it heavy?', p.about)",
    "exists": f"SELECT product FROM products p WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.product = p.product AND {GOOD.replace('text', 'r.text')}) ORDER BY 1",
    "not exists": f"SELECT product FROM products p WHERE NOT EXISTS (SELECT 1 FROM reviews r WHERE r.product = p.product AND {GOOD.replace('text', 'r.text')}) ORDER BY 1",
    "union": f"SELECT id FROM reviews WHERE {GOOD} UNION SELECT id FROM reviews WHERE {BAD} ORDER BY 1",
    "first": f"SELECT id FROM reviews WHERE {GOOD} ORDER BY id LIMIT 3",
    "first by answer": f"SELECT id, {DAYS} AS days FROM reviews ORDER BY days DESC NULLS LAST, id LIMIT 3",
    "any two": f"SELECT id FROM reviews WHERE {GOOD} LIMIT 2",
    "behind two": f"SELECT id FROM reviews WHERE {GOOD} ORDER BY id LIMIT 2 OFFSET 2",
    "first of each": f"SELECT DISTINCT ON (product) product, id FROM reviews WHERE {GOOD} ORDER BY product, id",
    "some good": f"SELECT product, bool_or({GOOD}) AS good FROM reviews GROUP BY product ORDER BY 1",
    "most days": f"SELECT product FROM reviews GROUP BY product ORDER BY sum({DAYS}) DESC, product LIMIT 1",
}
BOUNDED = [*KINDS][[*KINDS].index("two filters") :]
"""The kinds of which a full run asks what depends on its own order of questions."""

_WORDS = ("red", "small", "torn", "fine", "late", "loud")


def script(request: bf.Request) -> object:
    """An answer that depends on question and values alone."""
    key = repr((request.question, request.values)).encode()
    number = int.from_bytes(sha256(key).digest()[:4], "big")
    constraint = request.constraint
    if constraint.kind == "boolean":
        return number % 2 == 0
    if constraint.options:
        return constraint.options[number % len(constraint.options)]
    if constraint.kind in ("integer", "number"):
        return number % 30
    if constraint.kind == "score":
        return number % 11
    if constraint.kind == "struct":
        return {"size": number % 9, "colour": _WORDS[number % 6]}
    return f"word {number % 50}"


class Shop:
    """Two tables that change."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self._next, self._wide = rng, 0, False
        self.reviews: list[dict[str, Any]] = []
        self.products = [
            {"product": f"P{n}", "category": rng.choice(["bags", "lamps"]), "about": self._text()}
            for n in range(4)
        ]
        self.insert(8)

    def _text(self) -> str:
        return " ".join(self.rng.choices(_WORDS, k=self.rng.randint(1, 4)))

    def insert(self, rows: int) -> None:
        """Rows at the end, some with a text that is there already."""
        for _ in range(rows):
            self._next += 1
            row = {"id": self._next, "product": f"P{self.rng.randrange(4)}"}
            row |= {"stars": self.rng.randint(1, 5), "text": self._text()}
            self.reviews.append(row | ({"wide": self._next} if self._wide else {}))

    def change(self) -> str:
        """Change a table at random; what was done."""
        kind = self.rng.choice(["insert", "correct", "delete", "widen", "about", "nothing"])
        if kind == "insert":
            self.insert(self.rng.randint(1, 4))
        elif kind == "correct" and self.reviews:
            self.rng.choice(self.reviews)["text"] = self.rng.choice([self._text(), None, ""])
        elif kind == "delete" and self.reviews:
            self.reviews.remove(self.rng.choice(self.reviews))
        elif kind == "widen":
            self._wide = True
            for row in self.reviews:
                row.setdefault("wide", None)
        elif kind == "about":
            self.rng.choice(self.products)["about"] = self._text()
        return kind

    def fill(self, session: bf.Session) -> None:
        """Make the tables those of a session."""
        names = ["id", "product", "stars", "text", *(["wide"] if self._wide else [])]
        columns = {name: [row[name] for row in self.reviews] for name in names}
        for name, rows in (("reviews", columns), ("products", None)):
            if session.table_exist(name):
                session.deregister_table(name)
            if rows is None:
                session.from_pylist(self.products, name=name)
            else:
                session.from_arrow(_typed(rows), name=name)


def _typed(columns: dict[str, list[Any]]) -> Any:
    kinds = {"id": pa.int64(), "stars": pa.int64(), "wide": pa.int64()}
    return pa.table({n: pa.array(v, kinds.get(n, pa.string())) for n, v in columns.items()})
