"""Comments and the semantic layer: what the model is told of tables, columns, keys and metrics."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.schema.keys import Key

LAYER = """
[tables.sales]
description = "one row a receipt"
synonyms = ["receipts", "orders"]
columns.price = { description = "in euros", synonyms = ["cost"] }
[metrics.revenue]
sql = "sum(price * pieces)"
table = "sales"
description = "before tax"
[[keys]]
left = "sales.item"
right = "Products.sku"
[[examples]]
question = "How many pieces were sold?"
sql = "SELECT sum(pieces) FROM sales"
"""


def opened() -> tuple[bf.Session, list[str]]:
    prompts: list[str] = []

    def answer(call: bf.Request) -> str:
        prompts.append("\n".join(value or "" for value in call.values))
        return "SELECT sum(price * pieces) FROM sales"

    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off", show_values="on")
    fields = [
        pa.field("item", pa.string()),
        pa.field("price", pa.float64(), metadata={"comment": "what was\npaid"}),
        pa.field("pieces", pa.int64()),
    ]
    schema = pa.schema(fields)
    session.from_arrow(pa.table([["a"], [2.5], [3]], schema=schema), name="sales")
    session.from_pydict({"sku": ["a"], "title": ["Lamp"]}, name="Products")
    return session, prompts


def test_the_model_sees_comments_notes_keys_and_metrics(tmp_path: Path) -> None:
    session, prompts = opened()
    file = tmp_path / "layer.toml"
    file.write_text(LAYER)
    session.register_layer(file)
    session.ask("What is the revenue?")
    assert "CREATE TABLE sales ( -- one row a receipt; also receipts, orders\n" in prompts[0]
    assert "price DOUBLE, -- what was paid; in euros; also cost; e.g. 2.5\n" in prompts[0]
    assert "metric revenue of sales: sum(price * pieces) (before tax)" in prompts[0]
    assert "  FOREIGN KEY (item) REFERENCES products (sku)\n" in prompts[0]
    session.ask("How many pieces of the lamp were sold?")
    example = "question: How many pieces were sold? query: SELECT sum(pieces) FROM sales"
    assert example in " ".join(prompts[1].split())


def test_a_declared_key_joins_what_names_do_not_suggest(tmp_path: Path) -> None:
    session, _ = opened()
    assert read_catalog(session).keys == ()
    (tmp_path / "layer.toml").write_text(LAYER)
    session.register_layer(tmp_path / "layer.toml")
    (key,) = read_catalog(session).keys
    assert isinstance(key, Key)
    assert key.left == "sales.item"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tabels.x]", "it has 'tabels' beside tables"),
        ("[tables.sales]\nsynonym = 'x'", "'synonym' is not known"),
        ("[tables.sales]\nsynonyms = 'x'", "synonyms are a list"),
        ("[metrics.x]\nsql = 'y'", "'table'"),
        ("[tables", "cannot read the semantic layer"),
    ],
)
def test_a_file_of_another_form_is_explained(tmp_path: Path, text: str, problem: str) -> None:
    session, _ = opened()
    (tmp_path / "layer.toml").write_text(text)
    with pytest.raises(bf.QueryError, match=problem):
        session.register_layer(tmp_path / "layer.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[[keys]]\nleft = 'sales.itm'\nright = 'products.sku'",
            "describes sales.itm, which is not a column",
        ),
        (
            "[tables.sales.columns.prize]\nsynonyms = ['cost']",
            "describes sales.prize, which is not a column\nHint: Did you mean 'price'",
        ),
        (
            "[metrics.x]\nsql = 'sum(nope)'\ntable = 'sales'",
            "the metric 'x' of the semantic layer does not plan: unknown column 'nope'",
        ),
        (
            "[metrics.x]\nsql = 'sum(price'\ntable = 'sales'",
            "the metric 'x' of the semantic layer is not a query",
        ),
        (
            "[metrics.x]\nsql = '1 FROM sales; DROP TABLE sales'\ntable = 'sales'",
            "the metric 'x' of the semantic layer",
        ),
        (
            "[[examples]]\nquestion = 'Why?'\nsql = 'SELEC nonsense'",
            "the example 'Why\\?' of the semantic layer does not plan",
        ),
        (
            "[[examples]]\nquestion = 'Why?'\nsql = 'SELECT color FROM sales'",
            "the example 'Why\\?' of the semantic layer does not plan",
        ),
        (
            "[[examples]]\nquestion = 'Why?'\nsql = 'DELETE FROM sales'",
            "the example 'Why\\?' of the semantic layer",
        ),
    ],
)
def test_a_layer_is_held_against_the_tables_when_it_is_read(
    tmp_path: Path, text: str, problem: str
) -> None:
    session, _ = opened()
    (tmp_path / "layer.toml").write_text(text)
    with pytest.raises(bf.QueryError, match=problem):
        session.register_layer(tmp_path / "layer.toml")
    assert session.layer.metrics == ()
    assert session.templates.pairs == {}
    assert session.sql("SELECT count(*) AS n FROM sales").to_pylist() == [{"n": 1}]


def test_a_layer_may_describe_tables_that_are_not_there_yet(tmp_path: Path) -> None:
    session, _ = opened()
    (tmp_path / "layer.toml").write_text(
        "[tables.saels]\ndescription = 'x'\n[metrics.churn]\nsql = 'avg(left)'\ntable = 'members'"
    )
    with pytest.warns(bf.FileWarning, match="does not have: members, saels"):
        session.register_layer(tmp_path / "layer.toml")


def test_a_key_of_no_column_of_a_later_table_is_an_error(tmp_path: Path) -> None:
    session, _ = opened()
    (tmp_path / "layer.toml").write_text("[[keys]]\nleft = 'later.itm'\nright = 'products.sku'")
    with pytest.warns(bf.FileWarning, match="does not have: later"):
        session.register_layer(tmp_path / "layer.toml")
    session.from_pydict({"item": ["a"]}, name="later")
    with pytest.raises(bf.QueryError, match=r"a key of later.itm, which is not a column"):
        read_catalog(session)
