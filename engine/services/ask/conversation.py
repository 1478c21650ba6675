"""A conversation: questions that go on from the ones before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.budget import Budget
from blendfusion.errors import QueryError
from blendfusion.services.ask.before import Before
from blendfusion.services.ask.draft import Draft, draft
from blendfusion.services.ask.last import LAST
from blendfusion.services.ask.links import words_of

if TYPE_CHECKING:
    from blendfusion.services.ask.state import AskState

_COURTESY = frozenset(
    "a bye cool day evening for fine good goodbye great hello help hey hi i is it lot many morning "
    "much nice ok okay perfect see so super thank thanks that the very well welcome yes you "
    "your".split()
)
"""The words of messages that ask for nothing. Only a message of nothing else needs no query."""


def needs_query(message: str) -> bool:
    """Whether a message asks for something, since not all of its words are courtesies.

    >>> needs_query("Thank you very much!"), needs_query("And the cheaper ones?")
    (False, True)
    """
    return not set(words_of(message)) <= _COURTESY


@dataclass(frozen=True, slots=True)
class Turn:
    """A message with its query. ``draft`` is None for a message that needs none."""

    message: str
    draft: Draft | None

    @property
    def reply(self) -> str:
        """The query and a description of its search, from its plan; for a message without a query,
        the statement that nothing is searched."""
        return "Nothing is searched." if self.draft is None else str(self.draft)

    def __str__(self) -> str:
        return self.reply

    __repr__ = __str__


class Chat:
    """A conversation about tables: see ``Session.chat``."""

    def __init__(
        self,
        session: AskState,
        tables: Sequence[str] | None = None,
        *,
        candidates: int = 1,
        rounds: int = 2,
        budget: Budget | None = None,
    ) -> None:
        self._session = session
        self._tables = tables
        self._candidates, self._rounds, self._budget = candidates, rounds, budget
        self.turns: list[Turn] = []
        """All messages, oldest first."""

    def ask(self, message: str) -> Turn:
        """A query for a message, which may go on from the ones before: "the cheaper ones", "how
        many are that?". Nothing but the drafting runs. The query stands alone: where it reads the
        last result, it holds that query. Raises QueryError if none plans; the conversation is then
        as before."""
        if not message.strip():
            raise QueryError("the message is empty")
        turn = Turn(message, None)
        if needs_query(message):
            made = draft(
                self._session,
                message,
                self._own_tables(),
                candidates=self._candidates,
                rounds=self._rounds,
                budget=self._budget,
                before=self._before(),
            )
            turn = Turn(message, made)
        self.turns.append(turn)
        return turn

    def run(self) -> pa.Table:
        """The rows of the last query, which become the table ``last`` of the session. Raises
        QueryError if nothing was asked, or if the session has a table of that name."""
        made = self.draft
        if made is None:
            raise QueryError("nothing was asked yet", hint="chat.ask('Which reviews …?')")
        if LAST in self._session.catalog().schema().names():
            if not self._session.has_last:
                raise QueryError(
                    f"the session has a table {LAST} of its own",
                    hint="chat.draft.run() gives the rows and registers no table.",
                )
            rows = made.run()  # it may read the former result
            self._session.deregister_table(LAST)
        else:
            rows = made.run()
        self._session.from_arrow(rows, name=LAST)
        self._session.has_last = True
        return rows

    @property
    def draft(self) -> Draft | None:
        """The last query; None if there is none."""
        return next((turn.draft for turn in reversed(self.turns) if turn.draft is not None), None)

    def _own_tables(self) -> Sequence[str] | None:
        """The tables of the conversation without the result that it registered."""
        if self._tables is not None:
            return self._tables
        names = sorted(self._session.catalog().schema().names())
        return [name for name in names if name != LAST or not self._session.has_last]

    def _before(self) -> Before | None:
        latest = self.draft
        if latest is None:
            return None
        pairs = [(t.message, t.draft.sql) for t in self.turns if t.draft is not None]
        return Before(pairs, latest.frame.schema())
