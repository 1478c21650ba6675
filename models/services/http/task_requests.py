"""The requests for one task to one model: what is the same in all of them is made once."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.prompts.parse_reply import read_reply
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.http.client import CHAT
from blendfusion.models.services.http.sampling import Message, Parts
from blendfusion.models.services.http.structured_output import Fields, Form, forms_for, wrap
from blendfusion.models.services.http.transport import Request, json_bytes
from blendfusion.models.services.prompts.prompt import render, replies_of
from blendfusion.types import Constraint, Task

if TYPE_CHECKING:
    from blendfusion.models.services.http.chat import Chat

_LONGEST_KEPT, _MOST_KEPT = 100, 1_000
"""The longest reply, in characters, whose reading is kept for a task, and the most readings that
are kept."""


class TaskRequests:
    """The part that all requests for ``task`` share. For one event loop."""

    def __init__(self, chat: Chat, task: Task) -> None:
        self.distribution = task.constraint if task.constraint.distribution else None
        """The constraint of answers that are probabilities: the server is asked for one option, and
        they are those of the tokens of its reply."""
        task = task.with_single_answer
        self.task, self.constraint = task, task.constraint
        self.sent = sent_constraint(task)
        self.prompt = render(task, shots=chat.shots)
        self.forms = forms_for(self.sent)
        """The forms that can express the constraint."""
        self._chat = chat
        self._opening: list[Message] = [{**turn} for turn in self.prompt.opening]
        self._texts = [str(turn["content"]) for turn in self._opening]
        self._openings: dict[Form, list[Message]] = {}
        self._fields: dict[Form, Fields] = {}
        self._templates: dict[Form, _Template] = {}
        self._read: dict[str, str | None] = {}

    def texts(self, row: Values, content: str) -> list[str]:
        """The texts of a request, which no message is to repeat."""
        return [*(value for value in row if value), *self._texts, content]

    def opening(self, form: Form) -> list[Message]:
        """The turns before the question, with replies in the form that the server is held to."""
        if not form.wrapped:
            return self._opening
        found = self._openings.get(form)
        if found is None:
            found = [_wrap_reply(turn, self.sent) for turn in self._opening]
            self._openings[form] = found
        return found

    def fields(self, form: Form) -> Fields:
        """The fields of a request that carry the constraint."""
        found = self._fields.get(form)
        if found is None:
            found = self._fields[form] = form.fields(self.sent) or {}
        return found

    def request(self, form: Form, parts: Parts, content: str) -> Request | None:
        """The request whose last message is ``content``, and whose other fields have the names that
        the server accepts at present: ``parts``. None if it must be made as a whole."""
        template = self._templates.get(form)
        if template is None or template.parts is not parts:
            template = self._templates[form] = _Template(self._chat, self, form, parts)
        return template.fill(content)

    def read(self, reply: str) -> str | None:
        """See ``read_reply``. Short replies are mostly the same few."""
        if len(reply) > _LONGEST_KEPT:
            return read_reply(reply, self.constraint)
        if reply not in self._read:
            if len(self._read) >= _MOST_KEPT:
                self._read.clear()
            self._read[reply] = read_reply(reply, self.constraint)
        return self._read[reply]


class _Template:
    """The bytes of a request around its last message."""

    def __init__(self, chat: Chat, requests: TaskRequests, form: Form, parts: Parts) -> None:
        self.parts = parts
        place = secrets.token_hex(16)  # stands nowhere else
        question: Message = {"role": "user", "content": place}
        turns: list[Json] = [*requests.opening(form), question]
        body: dict[str, Json] = {"model": chat.model, "messages": turns, **requests.fields(form)}
        body |= chat.sampling.of(requests.constraint)
        body["messages"] = chat.sampling.messages(turns)
        request = chat.endpoint.request(CHAT, body)
        assert isinstance(request.content, bytes)
        self._url = request.url
        self._before, _, self._behind = request.content.partition(place.encode())
        self._once = place.encode() not in self._behind

    def fill(self, content: str) -> Request | None:
        if not self._once:
            return None
        return Request(self._url, self._before + json_bytes(content)[1:-1] + self._behind)


def sent_constraint(task: Task) -> Constraint:
    """The constraint that is sent to the server: the words of the prompt's shots (Yes and No for
    true and false), so that the prompt and the constraint never pull a model apart."""
    replies = replies_of(task)
    return Constraint("choice", options=replies) if replies else task.constraint


def _wrap_reply(turn: Message, constraint: Constraint) -> Message:
    """A shot's reply in the form that the server will be held to."""
    if turn["role"] != "assistant":
        return turn
    return {**turn, "content": wrap(str(turn["content"]), constraint)}
