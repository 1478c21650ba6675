"""The features that a server was found to accept: forms of structured output, sampling fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.http.structured_output import INSTRUCTION, JSON_KINDS, Form, forms_for
from blendfusion.models.prompts.canonical import canonical
from blendfusion.types import Constraint, ConstraintKind

FormKind: TypeAlias = ConstraintKind | Literal["grammar"]
"""The kind of a constraint; texts under a grammar are a kind of their own."""

_DISOBEYED = 4
"""One disobeying reply in so many means that a form is ignored; rarer ones are slips."""


def blames_odds(refusal: str) -> bool:
    """True if a server's words of refusal are about the odds of tokens."""
    return "logprobs" in refusal


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
        """Whether the software is one that may take a grammar, and did not refuse it."""
        return any(("grammar", form) not in self._useless for form in self.short)

    def known(self, constraint: Constraint) -> bool:
        kind = _kind(constraint)
        return kind == "text" or kind in self._taken

    def candidates(self, constraint: Constraint) -> list[Form]:
        """The forms still to try, best first; from the one that was taken on, if there is one."""
        kind = _kind(constraint)
        forms = [f for f in forms_for(constraint) if (kind, f) not in self._useless]
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

    def obeyed(self, constraint: Constraint, form: Form) -> None:
        """The server took ``form``, as far as one reply can show."""
        self._taken.setdefault(_kind(constraint), form)
        self._obeyed[_kind(constraint), form] += 1

    def ignored(self, constraint: Constraint, form: Form) -> None:
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


_MOST = ("max_tokens", "max_completion_tokens")
_BYTES_PER_TOKEN = 3
MANY_ODDS, FEW_ODDS = 20, 5
"""Numbers of token probabilities per position: OpenAI and vLLM return the first, others the second.
"""


_FIELD_WORDS = {
    "temperature": ("'temperature'", "`temperature`"),  # OpenAI, Anthropic
    "seed": ("'seed'",),
    "reasoning_effort": ("thinking", "Thinking"),  # Gemini
}
"""The words by which a server refuses a field."""

_BY_ODDS = ("score", "boolean", "choice")
"""Kinds of answers of which it matters how likely the others were."""


class Sampling:
    """The sampling fields of a request: greedy, less what the server says it does not know.

    ``odds`` are those that ask how likely other answers were.
    """

    def __init__(
        self, max_tokens: int, more: Mapping[str, Json] | None = None, *, odds: bool = True
    ) -> None:
        self.fields: dict[str, Json] = {"temperature": 0, "seed": 0, "max_tokens": max_tokens}
        self.fields |= more or {}
        self.odds: dict[str, Json] = {"logprobs": True, "top_logprobs": MANY_ODDS} if odds else {}

    def of(self, constraint: Constraint) -> dict[str, Json]:
        """The fields for an answer under a constraint; what a struct repeats is no part of the
        tokens that it may have."""
        if constraint.kind in _BY_ODDS:
            return self.fields | self.odds
        if constraint.kind != "struct":
            return self.fields
        more = -(-len(canonical({}, constraint).encode()) // _BYTES_PER_TOKEN)
        most = {name: self.fields[name] for name in _MOST if name in self.fields}
        return self.fields | {
            name: count + more for name, count in most.items() if isinstance(count, int)
        }

    def adapt(self, refusal: str, sent: Mapping[str, Json]) -> bool:
        """Change the fields as ``refusal`` of ``sent`` demands; False if it is about something
        else.

        Reasoning models of OpenAI, for one, take only their own temperature and call max_tokens
        otherwise.
        """
        current = self.fields | self.odds
        if any(name not in current or _is_other(name, sent, current) for name in sent):
            return True  # another request was refused in the meantime
        if blames_odds(refusal) and "logprobs" in sent:
            many = self.odds["top_logprobs"] == MANY_ODDS
            self.odds = self.odds | {"top_logprobs": FEW_ODDS} if many else {}
            return True
        if "max_completion_tokens" in refusal and "max_tokens" in self.fields:
            most = self.fields["max_tokens"]
            self.fields = self._without("max_tokens") | {"max_completion_tokens": most}
            return True
        for name, words in _FIELD_WORDS.items():
            if name in self.fields and any(word in refusal for word in words):
                self.fields = self._without(name)
                return True
        return False

    def _without(self, name: str) -> dict[str, Json]:
        return {other: value for other, value in self.fields.items() if other != name}


def _is_other(name: str, sent: Mapping[str, Json], current: Mapping[str, Json]) -> bool:
    return name not in _MOST and sent[name] != current[name]
