"""The part of a session that takes questions in plain words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blendfusion.budget import Budget, checked_budget
from blendfusion.services.ask.state import AskState

if TYPE_CHECKING:
    from blendfusion.services.ask.answers import Reply
    from blendfusion.services.ask.conversation import Chat
    from blendfusion.services.ask.draft import Draft


class Asking(AskState):
    """A context that drafts queries for questions."""

    def ask(
        self,
        question: str,
        tables: Sequence[str] | None = None,
        *,
        candidates: int = 1,
        rounds: int = 2,
        budget: Budget | None = None,
    ) -> Draft:
        """A query for a question in plain words, to be read before it is run.

        The session's model sees the names and types of columns, three sample values each, and
        values that the question mentions, of ``tables`` (None: all). It drafts ``candidates``
        queries. Each must only read those tables and must plan; one with a problem is repaired in
        at most ``rounds`` more drafts. Among queries that give rows, the result that most
        candidates agree on is chosen. ``Draft.run`` runs the query, within ``budget``. Raises
        QueryError, with all drafts, if none plans.
        """
        from blendfusion.services.ask.draft import draft

        held = checked_budget(budget)
        return draft(self, question, tables, candidates=candidates, rounds=rounds, budget=held)

    def register_layer(self, path: str | os.PathLike[str]) -> None:
        """Read the descriptions, synonyms, keys and metrics that ``ask`` uses from a TOML file
        (docs/ask.md), in place of an earlier one, and accept its examples. Raises QueryError for a
        file of another form, and for a column, a metric or an example that the session's tables
        contradict. Warns of tables that the session does not have."""
        from blendfusion.services.ask.layer_check import check_layer
        from blendfusion.services.ask.schema.layer import read_layer

        layer = read_layer(path)
        check_layer(self, layer)
        self.layer = layer
        for question, sql in self.layer.examples:
            self.templates.accept(question, sql)

    def answer(
        self,
        question: str,
        tables: Sequence[str] | None = None,
        *,
        candidates: int = 1,
        rounds: int = 2,
        budget: Budget | None = None,
    ) -> Reply:
        """A short answer to a question in plain words: a number, a date, a list or a span.

        The query that ``ask`` drafts runs, within ``budget``. Where none comes about, or its result
        has no answer, the model reads rows end to end, as many as its window holds, and
        ``Reply.source`` says so. Raises QueryError if neither gives an answer.
        """
        from blendfusion.services.ask.answers import answer

        held = checked_budget(budget)
        return answer(self, question, tables, candidates=candidates, rounds=rounds, budget=held)

    def chat(
        self,
        tables: Sequence[str] | None = None,
        *,
        candidates: int = 1,
        rounds: int = 2,
        budget: Budget | None = None,
    ) -> Chat:
        """A conversation about ``tables``: ``chat.ask("…")`` drafts as ``ask`` does, and a message
        may go on from the ones before. ``budget`` holds for each message and its query."""
        from blendfusion.services.ask.conversation import Chat

        held = checked_budget(budget)
        return Chat(self, tables, candidates=candidates, rounds=rounds, budget=held)
