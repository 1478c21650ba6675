"""The book of usage: a table of it, budgets over days that sessions share, and listed prices."""

from blendfusion.services import Service

SERVICE = Service(
    session="session:Accounting",
    tables={"usage": "table:usage_of"},
    prices={"listed": "listed_prices:listed_prices"},
)
