"""The forms of structured output that a server was found to accept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from blendfusion.models.services.http.structured_output import (
    INSTRUCTION,
    JSON_KINDS,
    Form,
    forms_for,
)
from blendfusion.types import Constraint, ConstraintKind

FormKind: TypeAlias = ConstraintKind | Literal["grammar"]
"""The kind of a constraint; texts under a grammar are a kind of their own."""

_DISOBEYED = 4
"""One disobeying reply in four means that the server ignores a form; rarer ones are slips."""


class FormsTaken:
    """The forms of structured output that a server accepts, for each kind of constraint.

    ``short``: forms without JSON around the answer that its software is known for. They come first,
    once they are proven: servers of another version ignore them without a word. ``named``: the only
    forms that the server's API has; () for all.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        self._named = frozenset(named)
        self.short: tuple[Form, ...] = ()
        self.proven: dict[Form, bool] = {}
        self._taken: dict[FormKind, Form] = {}
        self._useless: set[tuple[FormKind, Form]] = set()
        self._obeyed: Counter[tuple[FormKind, Form]] = Counter()
        self._ignored: Counter[tuple[FormKind, Form]] = Counter()

    @property
    def takes_grammars(self) -> bool:
        """Whether the server may support grammars: its software is known to, or unknown, and it has
        refused none so far."""
        return any(("grammar", form) not in self._useless for form in self.short)

    def knows(self, constraint: Constraint) -> bool:
        kind = _kind(constraint)
        return kind == "text" or kind in self._taken

    def most_search(self, constraint: Constraint) -> int:
        """How many requests may fail before one has a form that the server takes; the proof of a
        doubtful form is one, too."""
        if self.knows(constraint):
            return 0
        forms = self.candidates(constraint)
        return len(forms) - 1 + sum(map(self.doubtful, forms))

    def candidates(
        self, constraint: Constraint, expressible: Sequence[Form] | None = None
    ) -> list[Form]:
        """The forms still to try, best first, beginning with one that the server has accepted.
        ``expressible``: those that can express the constraint, if that is known."""
        kind = _kind(constraint)
        able = forms_for(constraint) if expressible is None else expressible
        forms = [f for f in able if (kind, f) not in self._useless]
        if self._named:
            forms = [form for form in forms if form.name in self._named]
        if kind == "grammar":  # of other software, each attempt would cost a whole answer
            forms = [f for f in forms if f in self.short] + [INSTRUCTION]
        elif kind not in JSON_KINDS:
            forms.sort(key=lambda form: form not in self.short)
        taken = self._taken.get(kind)
        return forms[forms.index(taken) :] if taken in forms else forms

    def doubtful(self, form: Form) -> bool:
        """Whether ``form`` has to be proven before it is relied on."""
        return form in self.short and form not in self.proven

    def note_obeyed(self, constraint: Constraint, form: Form) -> None:
        """The server took ``form``, as far as one reply can show."""
        self._taken.setdefault(_kind(constraint), form)
        self._obeyed[_kind(constraint), form] += 1

    def note_ignored(self, constraint: Constraint, form: Form) -> None:
        """A reply shows that the server paid no heed to ``form``."""
        key = (_kind(constraint), form)
        self._ignored[key] += 1
        if self._ignored[key] * _DISOBEYED >= self._obeyed[key] + self._ignored[key]:
            self.drop(constraint, form)

    def drop(self, constraint: Constraint, form: Form) -> None:
        """The server does not know ``form``, or ignores it."""
        if form is INSTRUCTION:  # there is nothing after it
            return
        kind = _kind(constraint)
        self._useless.add((kind, form))
        if self._taken.get(kind) is form:
            del self._taken[kind]


def _kind(constraint: Constraint) -> FormKind:
    return "grammar" if constraint.grammar else constraint.kind
