"""Scores of a yes/no question and a text by a server that tells the odds of tokens.

They are the scores that weights in process give (``llama.query_likelihood``), as far as an API
tells them: yes against no, behind the text and the question, is in the odds of the first token of
a reply; the likelihood of the question is in the odds of an echoed prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.events import model_call
from blendfusion.models.protocol.model import Values
from blendfusion.models.scores.token import Token
from blendfusion.models.services.http.chat import Chat
from blendfusion.models.services.http.client import CHAT, Missing, Refusal, ValueRequests
from blendfusion.models.services.http.completion import read_completion
from blendfusion.models.services.http.exchange import is_final
from blendfusion.models.services.http.sampling import FEW_ODDS, MANY_ODDS, blames_odds
from blendfusion.models.services.http.task_group import for_each
from blendfusion.models.services.http.text_completion import (
    COMPLETIONS,
    TextCompletion,
    read_text_completion,
)
from blendfusion.models.services.http.transport import Client
from blendfusion.models.services.prompts.prompt import render
from blendfusion.models.services.verbalizer.label_words import TRUTH
from blendfusion.models.services.verbalizer.likeness import likeness
from blendfusion.models.services.verbalizer.query_likelihood import (
    Score,
    asks_same,
    question_behind,
    way_for,
)
from blendfusion.models.services.verbalizer.running_text import Layout, join_pieces, plain
from blendfusion.models.services.verbalizer.similarity import similarities
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Task, Usage

_TOKEN_NAMES = ("max_tokens", "max_completion_tokens")
_BEGINNING = 3
"""Letters that tell which word a token begins."""
_PROBE = "One, two, three, four,"
_SAME = 0.05
"""The most by which two replies may tell the log probability of one token differently."""


@dataclass(slots=True)
class QuestionScores:
    """The scores of one question. ``spent``: the usage of all requests so far."""

    chat: Chat
    client: Client
    task: Task
    way: Way
    spent: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.way = way_for(self.task, self.way)

    @property
    def layout(self) -> Layout:
        """The prompt, whose question stands behind the text."""
        return plain(render(question_behind(self.task, self.way), shots=self.chat.shots))

    async def every(self, rows: Sequence[Values], *, fitting: bool = False) -> list[Score]:
        """The scores of some tuples of values, in order; with ``fitting``, without those that are
        too long. Raises as ``score`` does."""
        found: dict[int, Score] = {}

        async def score(place: int) -> None:
            try:
                found[place] = await self.score(rows[place])
            except Refusal as refusal:
                if not (fitting and refusal.too_long):
                    raise

        for place in range(len(rows))[:1]:  # alone: it finds out what all the others may send
            await score(place)
        await for_each(range(1, len(rows)), self.chat.endpoint.in_flight.most, score)
        return [found[place] for place in sorted(found)]

    async def score(self, row: Values) -> Score:
        """The scores of one tuple of values. Raises ``Refusal`` where the server tells no odds,
        ``NoAnswer``, ``Missing`` and ``ModelFailed``."""
        layout = self.layout
        texts = (turn["content"] for turn in layout.prompt.messages(row))
        errand = ValueRequests([*filter(None, row), *texts])
        try:
            likelihood, answer, similarity, way = 0.0, 0.0, 0.0, self.way
            if way.reads_texts and way.prompt == "chat":
                answer = await self._answer_in_chat(layout, row, errand)
            elif way.reads_texts:
                likelihood, answer = await self._in_running_text(layout, row, errand)
            if way.similarity and asks_same(self.task):
                similarity = likeness(*(value or "" for value in row))
            elif way.similarity:
                [similarity] = similarities(layout.prompt.replies[0], [layout.block(row).strip()])
            return likelihood, answer, similarity
        finally:
            self.spent += Usage(calls=errand.calls)

    async def available(self) -> bool:
        """Whether the server tells the scores that the way weighs: a request or two show it, once.
        Raises ``NoAnswer``, ``Missing`` and ``ModelFailed``."""
        way, known = self.way, self.chat.odds_support.by_request
        if way.prompt == "chat" and way.likelihood:
            return False
        request = "chat" if way.prompt == "chat" else "echo" if way.likelihood else "text"
        if request not in known:
            try:
                known[request] = await self._tells(request)
            except Refusal:
                known[request] = False
        return known[request]

    async def _tells(self, request: str) -> bool:
        """Whether there are odds. Those of an echoed prompt must stand at their own tokens: the
        token that the model continues with must have the same odds in the prompt.

        llama-cpp-python's server tells those in the next place where a model has no token that
        begins a text.
        """
        if request == "chat":
            await self.score(("",) * max(1, len(self.task.columns)))
            return True
        reply = await self._complete(_PROBE, ValueRequests([]), echo=False)
        if request == "text":
            return True
        token, whole = reply.tokens[0], _PROBE + reply.tokens[0].text
        echoed = await self._complete(whole, ValueRequests([]), echo=True)
        again = [one for one in echoed.between(len(_PROBE), len(whole)) if one.text == token.text]
        return len(again) == 1 and abs(_own(again[0]) - _own(token)) < _SAME

    async def _answer_in_chat(self, layout: Layout, row: Values, errand: ValueRequests) -> float:
        prompt, turns = layout.prompt, layout.prompt.messages(row)
        turns[-1]["content"] = prompt.head + layout.block(row) + _question(layout)
        messages: list[Json] = [{**turn} for turn in turns if turn["content"]]
        while True:
            sampling = self.chat.sampling.fields | self.chat.sampling.odds
            if not self.chat.sampling.odds:
                raise Refusal("the server tells no odds of tokens")
            turns_taken = self.chat.sampling.messages(messages)
            body: dict[str, Json] = {"messages": turns_taken, **_for_one_token(sampling)}
            try:
                reply = await self._post(CHAT, body, errand)
            except Refusal as refusal:
                if self.chat.sampling.adapt(refusal.words, {"messages": turns_taken} | sampling):
                    continue
                raise
            completion = read_completion(reply)
            self.spent += completion.usage
            if not completion.tokens:
                raise Refusal("the server tells no odds of tokens")
            return yes_against_no(completion.tokens[0].logprobs)

    async def _in_running_text(
        self, layout: Layout, row: Values, errand: ValueRequests
    ) -> tuple[float, float]:
        before = join_pieces(layout.head) + layout.block(row) + join_pieces(layout.tail)
        text = join_pieces(layout.head) + layout.block(row) + _question(layout)
        whole = text + join_pieces(layout.behind) if self.way.answer else text
        reply = await self._complete(whole, errand, echo=bool(self.way.likelihood))
        likelihood = answer = 0.0
        if self.way.likelihood:
            tokens = reply.between(len(before), len(text))
            likelihood = sum(_own(token) for token in tokens)
        if self.way.answer:
            [first, *_] = reply.between(len(whole), len(whole) + 1) or [Token("", {})]
            answer = yes_against_no(first.logprobs)
        return likelihood, answer

    async def _complete(self, prompt: str, errand: ValueRequests, *, echo: bool) -> TextCompletion:
        """The completion of a prompt by one token. Raises ``Refusal`` if it has no odds."""
        taken = self.chat.odds_support
        while True:
            fields = _for_one_token(self.chat.sampling.fields)
            body = {"prompt": prompt, "logprobs": taken.count, "echo": echo, **fields}
            try:
                reply = await self._post(COMPLETIONS, body, errand)
            except Missing as missing:
                raise Refusal(f"it has no completions of running text ({missing})") from None
            except Refusal as refusal:
                if blames_odds(refusal.words) and taken.count == MANY_ODDS:
                    taken.count = FEW_ODDS
                    continue
                raise
            completion = read_text_completion(reply, prompt)
            self.spent += completion.usage
            if not completion.tokens:
                raise Refusal("the server tells no odds of tokens")
            return completion

    async def _post(
        self, path: str, body: dict[str, Json], errand: ValueRequests
    ) -> dict[str, Json]:
        endpoint, model = self.chat.endpoint, self.chat.model
        sent: dict[str, Json] = {"model": model, **body}
        with model_call(endpoint.api.name, model, server=endpoint.host, port=endpoint.port):
            return await endpoint.post(
                self.client,
                endpoint.request(path, sent),
                errand,
                read=lambda reply: reply,
                final=is_final,
            )


def yes_against_no(logprobs: Mapping[str, float]) -> float:
    """The log odds of the words for yes against those for no, among the likeliest first tokens; a
    side without any counts as the least likely of them.

    >>> round(yes_against_no({"Yes": -0.5, " No": -1.5, "Maybe": -3.0}), 2)
    1.0
    """
    if not logprobs:
        return 0.0
    least = min(logprobs.values())
    sides = []
    for words in TRUTH:
        found = [p for text, p in logprobs.items() if any(_begins(word, text) for word in words)]
        sides.append(float(np.logaddexp.reduce(found)) if found else least)
    return sides[0] - sides[1]


def _question(layout: Layout) -> str:
    """The question, with what leads to it."""
    return join_pieces(layout.tail) + layout.lead + layout.prompt.replies[0]


def _begins(word: str, token: str) -> bool:
    text = token.lstrip()
    return text == word or (len(text) >= _BEGINNING and word.startswith(text))


def _own(token: Token) -> float:
    """The log probability of a token itself."""
    return token.logprobs.get(token.text, 0.0)


def _for_one_token(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {name: 1 if name in _TOKEN_NAMES else value for name, value in fields.items()}
