"""Thirty dialogues about restaurants, in 96 turns, with the whole question of each turn as SQL.

A dialogue is a list of (message, whole question). The model of a dialogue is scripted: it knows what
a message changes, but the query that it changes is the one in its prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator

CITIES = ("Palo Alto", "San Jose", "Menlo Park", "Mountain View", "Los Altos")
CUISINES = ("thai", "french", "coffee", "mexican", "pizza", "sushi")
COURTESY = "Thank you, great!"
Dialogue = list[tuple[str, str]]


def tables(count: int = 240) -> dict[str, list[object]]:
    """The rows of the table ``restaurants``."""
    rows = range(count)
    return {
        "id": list(rows),
        "name": [f"{CUISINES[i % 6].title()} House {i}" for i in rows],
        "city": [CITIES[i % 5] for i in rows],
        "cuisine": [CUISINES[i % 6] for i in rows],
        "price": [10 + i * 7 % 40 for i in rows],
        "rating": [3 + i * 3 % 20 / 10 for i in rows],
        "review": [f"{'quiet' if i % 3 else 'loud'} place number {i}" for i in rows],
    }


def dialogues() -> Iterator[Dialogue]:
    """Thirty dialogues: 96 messages in all."""
    for i in range(30):
        city, other, cuisine = CITIES[i % 5], CITIES[(i + 2) % 5], CUISINES[i % 6]
        base = f"SELECT name, price FROM restaurants WHERE cuisine = '{cuisine}'"
        here = f"{base} AND city = '{city}'"
        kinds: list[Dialogue] = [
            [
                (f"Which {cuisine} restaurants are in {city}?", here),
                ("And the cheaper ones, below 30?", f"{here} AND price < 30"),
                ("How many are that?", f"SELECT count(*) FROM ({here} AND price < 30) AS l"),
            ],
            [
                (f"Which {cuisine} restaurants are there?", base),
                (f"Only those in {city}.", here),
                (f"No, in {other}.", f"{base} AND city = '{other}'"),
            ],
            [
                (f"Which {cuisine} restaurants are in {city}?", here),
                ("Those where it is quiet.", f"{here} AND llm_filter('Is it quiet?', review)"),
                (
                    "The best one first.",
                    f"{here} AND llm_filter('Is it quiet?', review) ORDER BY rating DESC",
                ),
                (COURTESY, ""),
            ],
            [
                (f"Which {cuisine} restaurants are in {city}?", here),
                ("What do they cost on average?", f"SELECT avg(price) FROM ({here}) AS l"),
                (
                    "Something else: which cities are there?",
                    "SELECT DISTINCT city FROM restaurants ORDER BY city",
                ),
            ],
            [
                (f"Which {cuisine} restaurants are there?", base),
                ("And the cheaper ones, below 20?", f"{base} AND price < 20"),
                ("Forget the price.", base),
            ],
        ]
        yield kinds[i % 5]


def change(message: str, history: str) -> str:
    """The model's query for a message: the last query of the history, changed."""
    queries = re.findall(r"query: (.*)", history)
    last = queries[-1] if queries else ""
    first = re.fullmatch(r"Which (\w+) restaurants are (?:there|in (.*))\?", message)
    if first:
        city = f" AND city = '{first[2]}'" if first[2] else ""
        return f"SELECT name, price FROM restaurants WHERE cuisine = '{first[1]}'{city}"
    if found := re.fullmatch(r"Only those in (.*)\.", message):
        return f"{last} AND city = '{found[1]}'"
    if found := re.fullmatch(r"No, in (.*)\.", message):
        return re.sub(r"city = '[^']*'", f"city = '{found[1]}'", last)
    if found := re.fullmatch(r"And the cheaper ones, below (\d+)\?", message):
        return f"{last} AND price < {found[1]}"
    if message == "Forget the price.":
        return re.sub(r" AND price < \d+", "", last)
    changes = {
        "How many are that?": "SELECT count(*) FROM last",
        "What do they cost on average?": "SELECT avg(price) FROM last",
        "Those where it is quiet.": f"{last} AND llm_filter('Is it quiet?', review)",
        "The best one first.": f"{last} ORDER BY rating DESC",
        "Something else: which cities are there?": "SELECT DISTINCT city FROM restaurants ORDER BY city",
    }
    return changes[message]
