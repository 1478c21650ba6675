"""Drafts a query for a question in plain words: catalogue, linked values, checks and repair."""

from blendfusion.services import Service

SERVICE = Service(
    session="session:Asking",
)
