"""Wrong drafts are doubted, and the right queries of the same questions are not."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.errors import BlendFusionError
from blendfusion.services.ask.doubt_case import Case
from blendfusion.services.ask.doubt_rules import RULES, doubts
from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.where import parse

DAY = datetime.date(2023, 1, 1)
COUNTRIES = ("Germany", "France", "Austria", "Italy")
STATES = ("shipped", "open", "cancelled")


def shop() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: ""), cache=None, progress="off")
    session.from_pydict(
        {
            "customer_id": list(range(101, 141)),
            "name": [f"Person {n % 35}" for n in range(40)],
            "country": [COUNTRIES[n % 4] for n in range(40)],
            "signup_date": [DAY + datetime.timedelta(days=9 * n) for n in range(40)],
        },
        name="customers",
    )
    session.from_pydict(
        {
            "order_id": list(range(1001, 1201)),
            "customer_id": [101 + n * n % 37 for n in range(200)],
            "order_date": [DAY + datetime.timedelta(days=4 * n) for n in range(200)],
            "amount": [round(20 + n * 7.3 % 480, 2) for n in range(200)],
            "discount": [None if n % 3 else 5.0 for n in range(200)],
            "status": [STATES[n % 3] for n in range(200)],
        },
        name="orders",
    )
    session.from_pydict(
        {
            "item_id": list(range(1, 501)),
            "order_id": [1001 + n % 200 for n in range(500)],
            "product_id": [11 + n % 20 for n in range(500)],
            "quantity": [1 + n % 5 for n in range(500)],
        },
        name="items",
    )
    session.from_pydict(
        {
            "product_id": list(range(11, 31)),
            "product_name": [f"Thing {n}" for n in range(20)],
            "category": [("Toys", "Tools", "Books")[n % 3] for n in range(20)],
            "price": [3.5 * (n + 1) for n in range(20)],
        },
        name="products",
    )
    return session


SESSION = shop()
CATALOG: Catalog = read_catalog(SESSION)
INDEX = ValueIndex(CATALOG)


def has_rows(sql: str) -> bool | None:
    try:
        return bool(SESSION.sql(sql, read_only=True).limit(1).to_arrow_table().num_rows)
    except BlendFusionError:
        return None


def doubted(question: str, sql: str) -> tuple[list[str], list[str]]:
    """The strong and the weak rules that doubt a query."""
    tree = parse(sql)
    assert tree is not None
    case = Case(question, tree, CATALOG, has_rows, tuple(INDEX.links(question)))
    found = [rule for rule, _ in doubts(case)]
    return [r.name for r in found if r.is_strong], [r.name for r in found if not r.is_strong]


OF = "FROM orders o JOIN items i ON o.order_id = i.order_id"
AND_CUSTOMERS = "FROM orders o JOIN customers c ON o.customer_id = c.customer_id"
CASES = [
    # question, right query, rule, wrong queries
    (
        "What is the total amount of orders by category?",
        None,
        "summed twice",
        [
            f"SELECT p.category, sum(o.amount) {OF} JOIN products p ON i.product_id = p.product_id GROUP BY 1",
            f"SELECT p.category, sum(amount) AS t {OF} JOIN products p USING (product_id) GROUP BY p.category",
        ],
    ),
    (
        "What is the total amount of all orders?",
        "SELECT sum(amount) FROM orders",
        "summed twice",
        [
            f"SELECT sum(o.amount) {OF}",
            "WITH x AS (SELECT 1) SELECT sum(o.amount) FROM orders AS o LEFT JOIN items ON items.order_id = o.order_id",
        ],
    ),
    (
        "What is the average amount of orders from each country?",
        f"SELECT c.country, avg(o.amount) {AND_CUSTOMERS} GROUP BY c.country",
        "summed twice",
        [
            f"SELECT c.country, avg(o.amount) {AND_CUSTOMERS} JOIN items i ON i.order_id = o.order_id GROUP BY 1"
        ],
    ),
    (
        "How many orders are there?",
        "SELECT count(*) FROM orders",
        "counted twice",
        [f"SELECT count(*) {OF}", f"SELECT count(o.order_id) {OF}"],
    ),
    (
        "How many customers have orders?",
        f"SELECT count(DISTINCT c.customer_id) {AND_CUSTOMERS}",
        "counted twice",
        [f"SELECT count(*) {AND_CUSTOMERS}", f"SELECT count(c.customer_id) {AND_CUSTOMERS}"],
    ),
    (
        "How many orders are from Germany?",
        f"SELECT count(*) {AND_CUSTOMERS} WHERE country = 'Germany'",
        "cross join",
        [
            "SELECT count(*) FROM orders, customers WHERE country = 'Germany'",
            "SELECT count(*) FROM orders o CROSS JOIN customers c WHERE c.country = 'Germany'",
            "SELECT count(*) FROM orders o JOIN customers c ON c.customer_id = c.customer_id WHERE country = 'Germany'",
        ],
    ),
    (
        "Which products have customers from Germany bought?",
        None,
        "joined on no key",
        [
            "SELECT product_name FROM products p JOIN items i ON p.product_id = i.quantity",
            "SELECT country FROM customers c JOIN items i ON i.item_id = c.customer_id WHERE country = 'Germany'",
        ],
    ),
    (
        "How many orders are there?",
        "SELECT count(*) FROM orders",
        "form",
        ["SELECT order_id FROM orders"],
    ),
    (
        "What is the average amount of an order?",
        "SELECT avg(amount) FROM orders",
        "form",
        ["SELECT sum(amount) FROM orders", "SELECT amount FROM orders"],
    ),
    (
        "What is the highest amount of an order?",
        "SELECT max(amount) FROM orders",
        "extreme from nowhere",
        ["SELECT min(amount) FROM orders"],
    ),
    (
        "What is the total amount?",
        "SELECT sum(amount) FROM orders",
        "mean from nowhere",
        ["SELECT avg(amount) FROM orders"],
    ),
    (
        "What is the total amount?",
        "SELECT sum(amount) FROM orders",
        "total left out",
        ["SELECT max(amount) FROM orders", "SELECT amount FROM orders"],
    ),
    (
        "What are the five largest orders?",
        "SELECT order_id FROM orders ORDER BY amount DESC LIMIT 5",
        "limit without order",
        ["SELECT order_id FROM orders LIMIT 5"],
    ),
    (
        "What are the 5 largest orders?",
        "SELECT order_id FROM orders ORDER BY amount DESC LIMIT 5",
        "wrong direction",
        ["SELECT order_id FROM orders ORDER BY amount LIMIT 5"],
    ),
    (
        "What are the 3 cheapest products?",
        "SELECT product_name FROM products ORDER BY price LIMIT 3",
        "number unused",
        [
            "SELECT product_name FROM products ORDER BY price LIMIT 10",
            "SELECT product_name FROM products ORDER BY price",
        ],
    ),
    (
        "How many orders are above 300?",
        "SELECT count(*) FROM orders WHERE amount > 300",
        "number unused",
        [
            "SELECT count(*) FROM orders WHERE amount > 100",
            "SELECT count(*) FROM orders",
            "SELECT count(*) FROM orders WHERE amount > 3000",
        ],
    ),
    (
        "How many orders are above 90 thousand?",
        "SELECT count(*) FROM orders WHERE amount > 90000",
        "number unused",
        ["SELECT count(*) FROM orders WHERE amount > 90"],
    ),
    (
        "How many orders are above 300?",
        "SELECT count(*) FROM orders WHERE 300 < amount",
        "other way",
        [
            "SELECT count(*) FROM orders WHERE amount < 300",
            "SELECT count(*) FROM orders WHERE NOT amount > 300",
        ],
    ),
    (
        "Which items have at least 3 pieces by quantity?",
        "SELECT item_id FROM items WHERE quantity > 2",
        "other bound",
        ["SELECT item_id FROM items WHERE quantity > 3"],
    ),
    (
        "Which items have a quantity of more than 3?",
        "SELECT item_id FROM items WHERE quantity > 3",
        "other bound",
        ["SELECT item_id FROM items WHERE quantity >= 3"],
    ),
    (
        "How many orders were placed in 2023?",
        "SELECT count(*) FROM orders WHERE order_date >= '2023-01-01' AND order_date < '2024-01-01'",
        "number unused",
        [
            "SELECT count(*) FROM orders",
            "SELECT count(*) FROM orders WHERE extract(year FROM order_date) = 2025",
        ],
    ),
    (
        "How many orders were placed in March 2023?",
        "SELECT count(*) FROM orders WHERE order_date BETWEEN '2023-03-01' AND '2023-03-31'",
        "other period",
        [
            "SELECT count(*) FROM orders WHERE order_date >= '2023-03-01' AND order_date < '2023-03-31'",
            "SELECT count(*) FROM orders WHERE order_date BETWEEN '2023-03-01' AND '2023-04-01'",
            "SELECT count(*) FROM orders WHERE order_date > DATE '2023-03-01' AND order_date < '2023-04-01'",
        ],
    ),
    (
        "How many orders are not cancelled?",
        "SELECT count(*) FROM orders WHERE status <> 'cancelled'",
        "negation left out",
        ["SELECT count(*) FROM orders WHERE status = 'cancelled'"],
    ),
    (
        "Which customers have no orders?",
        "SELECT name FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.order_id IS NULL",
        "negation left out",
        [f"SELECT c.name {AND_CUSTOMERS}"],
    ),
    (
        "How many orders are cancelled?",
        "SELECT count(*) FROM orders WHERE status = 'cancelled'",
        "negation from nowhere",
        [
            "SELECT count(*) FROM orders WHERE status <> 'cancelled'",
            "SELECT count(*) FROM orders WHERE NOT status = 'cancelled'",
        ],
    ),
    (
        "How many customers are from Germany?",
        "SELECT count(*) FROM customers WHERE country = 'Germany'",
        "stored in another case",
        [
            "SELECT count(*) FROM customers WHERE country = 'germany'",
            "SELECT count(*) FROM customers WHERE country IN ('GERMANY')",
            "SELECT count(*) FROM customers WHERE country LIKE '%germany%'",
        ],
    ),
    (
        "How many customers are from Germany?",
        "SELECT count(*) FROM customers WHERE country = 'Germany'",
        "not stored",
        [
            "SELECT count(*) FROM customers WHERE country = 'Germny'",
            "SELECT count(*) FROM customers WHERE country = 'DE'",
        ],
    ),
    (
        "What share of orders is cancelled?",
        "SELECT 1.0 * count(*) FILTER (WHERE status = 'cancelled') / count(*) FROM orders",
        "whole division",
        ["SELECT count(*) FILTER (WHERE status = 'cancelled') / count(*) FROM orders"],
    ),
    (
        "What percentage of orders is cancelled?",
        "SELECT avg(CASE WHEN status = 'cancelled' THEN 100.0 ELSE 0 END) FROM orders",
        "share left out",
        ["SELECT count(*) FROM orders WHERE status = 'cancelled'"],
    ),
    (
        "How many different countries are there?",
        "SELECT count(DISTINCT country) FROM customers",
        "distinct left out",
        ["SELECT count(country) FROM customers"],
    ),
    ("How many orders are there?", "SELECT count(*) FROM orders", "reads no table", ["SELECT 42"]),
    (
        "How many orders are open?",
        "SELECT count(*) FROM orders WHERE status = 'open'",
        "always true",
        [
            "SELECT count(*) FROM orders WHERE status = 'open' OR 1 = 1",
            "SELECT count(*) FROM orders WHERE status = 'open' OR TRUE",
        ],
    ),
    (
        "How many orders are open?",
        "SELECT count(*) FROM orders WHERE status = 'open'",
        "value not compared",
        ["SELECT count(*), 'open' AS status FROM orders"],
    ),
]
NOTES = [
    (
        "How many orders were made after March 2024?",
        "SELECT count(*) FROM orders WHERE order_date > DATE '2024-03-31'",
        "other side",
        [
            "SELECT count(*) FROM orders WHERE order_date < DATE '2024-04-01'",
            "SELECT count(*) FROM orders WHERE order_date >= DATE '2023-04-01'",
        ],
    ),
    (
        "How many customers signed up before 2024?",
        "SELECT count(*) FROM customers WHERE signup_date <= DATE '2023-12-31'",
        "other side",
        [
            "SELECT count(*) FROM customers WHERE signup_date > DATE '2024-01-01'",
            "SELECT count(*) FROM customers WHERE signup_date < DATE '2025-01-01'",
            "SELECT count(*) FROM customers WHERE DATE '2024-01-01' < signup_date",
        ],
    ),
    (
        "What is the total amount of shipped orders?",
        "SELECT sum(amount) FROM orders WHERE status = 'shipped'",
        "other value",
        [
            "SELECT sum(amount) FROM orders WHERE status = 'open'",
            "SELECT sum(amount) FROM orders WHERE status IN ('open', 'cancelled')",
            "SELECT sum(CASE WHEN status = 'cancelled' THEN amount END) FROM orders",
        ],
    ),
    (
        "How many orders are open?",
        "SELECT count(*) FROM orders WHERE status = 'open'",
        "number from nowhere",
        ["SELECT count(*) FROM orders WHERE status = 'open' AND amount > 50"],
    ),
    (
        "Which products are there?",
        "SELECT product_name FROM products",
        "limit from nowhere",
        ["SELECT product_name FROM products LIMIT 5"],
    ),
    (
        "Which order is the largest?",
        "SELECT order_id FROM orders ORDER BY amount DESC LIMIT 1",
        "one left out",
        ["SELECT order_id FROM orders ORDER BY amount DESC"],
    ),
    (
        "How many orders has every customer, also for those with none?",
        "SELECT c.customer_id, count(o.order_id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id "
        "GROUP BY c.customer_id",
        "counts missing rows",
        [
            "SELECT c.customer_id, count(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id "
            "GROUP BY c.customer_id"
        ],
    ),
    (
        "How many orders are open for each customer?",
        "SELECT c.customer_id, count(o.order_id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id "
        "AND o.status = 'open' GROUP BY c.customer_id",
        "outer join undone",
        [
            "SELECT c.customer_id, count(o.order_id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id "
            "WHERE o.status = 'open' GROUP BY c.customer_id"
        ],
    ),
    (
        "How many orders are there per status?",
        "SELECT status, count(*) FROM orders GROUP BY status",
        "other groups",
        ["SELECT customer_id, count(*) FROM orders GROUP BY customer_id"],
    ),
    (
        "How many orders were there per month?",
        "SELECT date_trunc('month', order_date), count(*) FROM orders GROUP BY 1",
        "merged years",
        [
            "SELECT extract(month FROM order_date), count(*) FROM orders GROUP BY extract(month FROM order_date)"
        ],
    ),
    (
        "How many orders are there per customer?",
        f"SELECT c.customer_id, c.name, count(*) {AND_CUSTOMERS} GROUP BY c.customer_id, c.name",
        "groups of equal names",
        [f"SELECT c.name, count(*) {AND_CUSTOMERS} GROUP BY c.name"],
    ),
    (
        "How many customers are from Germany or France?",
        "SELECT count(*) FROM customers WHERE country IN ('Germany', 'France')",
        "or left out",
        ["SELECT count(*) FROM customers WHERE country = 'Germany'"],
    ),
    (
        "How many customers are from Portugal?",
        None,
        "name left out",
        [
            "SELECT count(*) FROM customers",
            "SELECT count(*) FROM customers WHERE country = 'Italy'",
        ],
    ),
    (
        "How many customers are from Portugal?",
        None,
        "stated and not stored",
        ["SELECT count(*) FROM customers WHERE country = 'Portugal'"],
    ),
    (
        "Which products are toys?",
        "SELECT product_name FROM products WHERE category = 'Toys'",
        "wildcard of a letter",
        ["SELECT product_name FROM products WHERE category LIKE '%T%'"],
    ),
    (
        "Which orders were paid?",
        None,
        "extra not null",
        ["SELECT order_id FROM orders WHERE discount IS NOT NULL"],
    ),
    (
        "What is the average amount of an order?",
        "SELECT avg(amount) FROM orders",
        "joined for nothing",
        [f"SELECT avg(o.amount) {AND_CUSTOMERS}"],
    ),
]


@pytest.mark.parametrize(
    ("question", "rule", "sql"), [(q, rule, sql) for q, _, rule, wrong in CASES for sql in wrong]
)
def test_a_wrong_draft_is_repaired(question: str, rule: str, sql: str) -> None:
    strong, _ = doubted(question, sql)
    assert rule in strong, strong


@pytest.mark.parametrize(
    ("question", "rule", "sql"), [(q, rule, sql) for q, _, rule, wrong in NOTES for sql in wrong]
)
def test_a_draft_that_may_be_wrong_has_a_note(question: str, rule: str, sql: str) -> None:
    _, weak = doubted(question, sql)
    assert rule in weak, weak


@pytest.mark.parametrize(("question", "sql"), [(q, r) for q, r, _, _ in [*CASES, *NOTES] if r])
def test_a_right_query_has_no_doubt(question: str, sql: str) -> None:
    assert doubted(question, sql) == ([], [])


def drafted(question: str, sql: str) -> tuple[bf.Draft, int]:
    """The draft where a model writes ``sql`` for all that is asked, and how often it is asked."""
    count: list[str] = []

    def write(call: bf.Request) -> str:
        count.append(sql)
        return sql

    session = bf.connect(bf.ScriptedModel(write), cache=None, progress="off", show_values="on")
    for name in ("customers", "orders"):
        session.from_arrow(SESSION.table(name).to_arrow_table(), name=name)
    return session.ask(question), len(count)


@pytest.mark.parametrize("country", ["germany", "GERMANY", " Germany"])
def test_a_literal_takes_the_stored_spelling_without_a_model(country: str) -> None:
    sql = f"SELECT count(*) AS n FROM customers WHERE country = '{country}'"
    draft, requests = drafted("How many customers are from Germany?", sql)
    assert draft.run().to_pylist() == [{"n": 10}]
    assert (draft.problem, requests) == ("", 1)
    assert "'Germany'" in draft.sql


def test_a_join_without_a_key_is_not_run() -> None:
    sql = "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e, orders f"
    draft, requests = drafted("How many orders are there?", sql)
    assert requests == 2
    assert not draft.may_run
    assert draft.notes.startswith(
        "Problem: the query joins a and b without a key: every row of one"
    )
    reply = draft.frame.session.answer("How many orders are there?")
    assert (reply.text, reply.problem.startswith("the query joins a and b")) == ("", True)


def test_a_note_stands_behind_the_problem_and_withholds_values() -> None:
    sql = "SELECT status, count(*) FROM orders WHERE amount < 77 GROUP BY status"
    draft, _ = drafted("How many orders above 300 are there per customer?", sql)
    assert draft.notes.startswith("Problem: the question says 300, and the query does not")
    assert (
        "\nNote: the query compares with 77, a number that the question does not state."
        in draft.notes
    )


def test_the_documentation_lists_every_rule_with_its_reason() -> None:
    page = (Path(__file__).parents[4] / "benchmarks" / "draft_doubts.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| (strong|weak) \| ([^|]+) \| \d[^|]* \| \d+ \|$", page, re.M)
    told = [(rule.name, "strong" if rule.is_strong else "weak", rule.reason) for rule in RULES]
    assert rows == told


@pytest.mark.parametrize(
    ("question", "sql", "wrong"),
    [
        ("Which 3 orders have the highest discount?",
         "SELECT order_id FROM orders ORDER BY discount DESC LIMIT 3", True),
        ("Which 3 orders have the highest discount?",
         "SELECT order_id, discount AS d FROM orders ORDER BY d DESC, order_id LIMIT 3", True),
        ("Which 3 orders have the highest discount?",
         "SELECT order_id, discount FROM orders ORDER BY 2 DESC LIMIT 3", True),
        ("Which status has the highest average discount?",
         "SELECT status FROM orders WHERE status <> 'open' GROUP BY status "
         "ORDER BY avg(discount) DESC LIMIT 1", True),
        ("Which 3 orders have the highest discount?",
         "SELECT order_id FROM orders ORDER BY discount DESC NULLS LAST LIMIT 3", False),
        ("Which 3 orders have the lowest discount?",
         "SELECT order_id FROM orders ORDER BY discount LIMIT 3", False),
        ("Which 3 orders have the highest amount?",
         "SELECT order_id FROM orders ORDER BY amount DESC LIMIT 3", False),
        ("Which 3 orders have the highest discount?",
         "SELECT order_id FROM orders WHERE discount IS NOT NULL ORDER BY discount DESC LIMIT 3",
         False),
    ],
)  # fmt: skip
def test_the_first_rows_of_an_order_have_a_value(question: str, sql: str, wrong: bool) -> None:
    draft, _ = drafted(question, sql)
    assert (" NULL in " in draft.notes) == wrong
