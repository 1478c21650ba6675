"""Prices of hosted models as their vendors list them, each with a date and a source.

A price belongs to a model of one host: the same weights elsewhere have another, or none. Prices
change; ``listed_prices.csv`` says when each was read.
"""

from __future__ import annotations

import csv
import datetime
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from blendfusion.budget import Price


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """A price in US dollars, and where it was read."""

    model: str
    price: Price
    date: datetime.date
    source: str


@cache
def price_table() -> tuple[ListedPrice, ...]:
    """All listed prices."""
    text = files(__package__).joinpath("listed_prices.csv").read_text(encoding="utf-8")
    return tuple(
        ListedPrice(
            row["model"],
            Price(prompt=float(row["prompt"]), completion=float(row["completion"])),
            datetime.date.fromisoformat(row["date"]),
            row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def listed_prices() -> dict[str, Price]:
    """The listed prices by the names of models."""
    return {listed.model: listed.price for listed in price_table()}
