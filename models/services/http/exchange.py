"""The requests for one value, and the resulting answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import Json, closed_set
from blendfusion.models.protocol.events import model_call
from blendfusion.models.protocol.images import content, is_image, plain_image, url_in, url_of
from blendfusion.models.protocol.model import Values
from blendfusion.models.scores.distribution import distribution_of
from blendfusion.models.scores.logprobs import written_odds, written_shares
from blendfusion.models.services.http.chat import Chat
from blendfusion.models.services.http.client import CHAT, NoAnswer, Refusal, ValueRequests
from blendfusion.models.services.http.completion import Completion, read_completion
from blendfusion.models.services.http.retry import Passing
from blendfusion.models.services.http.sampling import (
    Message,
    Search,
    blames_odds,
    blames_part,
)
from blendfusion.models.services.http.structured_output import (
    INSTRUCTION,
    PROOF,
    PROOF_QUESTION,
    Form,
    blames_form,
)
from blendfusion.models.services.http.task_requests import TaskRequests
from blendfusion.models.services.http.transport import Client, Request
from blendfusion.models.services.verbalizer.expected_score import of_tokens, point_odds
from blendfusion.redaction import without_secrets
from blendfusion.types import Answer, Constraint, Usage

_SHOWN = 80
"""Characters of a reply that an error repeats."""
_SHOWN_FROM = 10_000
_NO_ODDS = "the server states no probabilities of its answers"
_PAUSE_SECONDS = 0.02
"""Between two looks whether another request has found out what the server refuses."""


class Exchange:
    """Asks about one value until there is an answer inside the constraint, or the tries are used
    up."""

    def __init__(
        self, chat: Chat, client: Client | None, requests: TaskRequests, row: Values
    ) -> None:
        """Without a client, only ``body`` and ``answer_in`` are for use."""
        self._chat, self._client, self._requests = chat, client, requests
        task, prompt = requests.task, requests.prompt
        self._constraint, self._sent = requests.constraint, requests.sent
        self._images = task.images
        text = prompt.ask(row)
        self._content: str | None = text
        """The question, where it is all that is particular to the request."""
        sent = requests.texts(row, text)
        self._messages: list[Message] = [{"role": "user", "content": text}]
        urls = []
        if task.images:
            shown = [(name, _url(value), text) for name, value, text in prompt.beside(row)]
            parts = content(prompt.head_of(row), shown)
            urls = [url for part in parts if (url := url_in(part))]
            self._content, self._messages = None, [{"role": "user", "content": parts}]
            sent += urls
        self._errand = ValueRequests(sent, images=len(urls))
        self._spent: Usage | None = None
        """The usage of the replies so far."""
        self._latest: Mapping[str, Json] = {}
        """The latest request."""
        self._searches = False
        """Whether it finds out at present what the server refuses."""
        self.unanswered: str | None = None
        """Why the server did not answer, where another one might: see ``NoAnswer.kind``."""

    @property
    def request_texts(self) -> Sequence[str]:
        """The texts of the request, which no message is to repeat."""
        return self._errand.prompt

    async def answer(self) -> Answer:
        """The answer, or why there is none.

        A reply outside the constraint is asked for once more, where anything is tried again at all.
        Raises ``Missing`` and ``ModelFailed``.
        """
        try:
            reply = await self._next_reply()
            answer = self._read(reply)
            again = answer.error is not None and answer.error != _NO_ODDS
            if again and reply.whole and self._patient:
                self._content = None
                self._messages = [*self._messages, *_correction(reply.text, self._constraint)]
                answer = self._read(await self._next_reply())
            self._chat.sight.proven |= self._images
        except Refusal as error:
            if self._images and not self._chat.sight.proven and not error.too_long:
                await self._prove_sight(error)
            answer = Answer.failed(str(error), too_long=error.too_long)
        except NoAnswer as error:
            self.unanswered = error.kind
            answer = Answer.failed(str(error))
        failed = 0 if answer.error is None else 1
        return answer.with_usage(self._usage(failed))

    def _usage(self, failed: int) -> Usage:
        """The usage of the value."""
        spent, calls = self._spent, self._errand.calls
        if spent is None:
            return Usage(1, failed=failed, calls=calls)
        tokens = spent.prompt_tokens, spent.evaluated_tokens, spent.completion_tokens
        return Usage(1, 0, failed, calls, *tokens)

    def body(self) -> dict[str, Json]:
        """The body of the first request, for those that are sent later, or by another program."""
        form = self._chat.forms.candidates(self._sent, self._requests.forms)[0]
        sampling = self._chat.sampling.of(self._constraint)
        return {"model": self._chat.model} | self._body(form) | sampling

    def answer_in(self, reply: dict[str, Json]) -> Answer:
        """The answer that a reply to ``body`` states, or why it states none."""
        try:
            completion = read_completion(reply)
        except Passing as trouble:
            return Answer.failed(str(trouble)).with_usage(Usage(values=1, failed=1))
        answer = self._read(completion)
        failed = 0 if answer.error is None else 1
        return answer.with_usage(completion.usage + Usage(values=1, failed=failed))

    async def _prove_sight(self, refusal: Refusal) -> None:
        """Find out whether one image was refused, or all would be: a plain one tells.

        Raises ``Missing``, and ``ModelFailed`` if the model sees none.
        """
        plain: Message = {"role": "user", "content": plain_image()}
        try:
            await self._post({"messages": [plain]}, Constraint())
        except NoAnswer:
            return  # then the next refusal asks again
        except Refusal:
            raise ModelFailed(
                f"{self._chat.model} at {self._chat.endpoint.safe_url} takes no images ({refusal})",
                hint="Connect a model that sees images: of llama-server one started with --mmproj, of "
                "vLLM a multimodal one.",
                foreign=True,
            ) from None
        self._chat.sight.proven = True

    @property
    def _patient(self) -> bool:
        return self._chat.endpoint.retry.patient

    async def _next_reply(self) -> Completion:
        """The reply under the first form that the server takes."""
        forms = self._chat.forms
        known = forms.knows(self._sent)
        refused, shown = Refusal("no form was tried"), False
        for form in forms.candidates(self._sent, self._requests.forms):
            if forms.doubtful(form):
                forms.proven[form] = await self._proves(form)
            if not forms.proven.get(form, True):
                forms.drop(self._sent, form)
                continue
            if shown and not known and not await self._heeds_without_images(form):
                continue
            shown = self._images
            try:
                reply = await self._reply(form)
            except Refusal as refusal:
                refused = refusal
                blamed = blames_form(refusal.words)
                if refusal.too_long or (known and not blamed) or self._chat.sampling.refuses_all:
                    raise
                # A known form may be fine, and only this constraint too much for it.
                if not known and blamed:
                    forms.drop(self._sent, form)
                elif shown and await self._heeds_without_images(form):
                    raise  # the images were refused, and would be with any form
                continue
            spoken = reply.visible_text
            seen = reply.whole and spoken is not None
            if form is INSTRUCTION or not seen or form.is_obeyed(spoken or "", self._sent):
                forms.note_obeyed(self._sent, form)
                return reply
            forms.note_ignored(self._sent, form)
            slip = form in forms.candidates(self._sent)
            if known and (slip or not self._patient):
                return reply
        raise refused

    async def _heeds_without_images(self, form: Form) -> bool:
        """Whether the server heeds ``form`` where the question comes without its images, which are
        large, and need not be sent to find out."""
        if form is INSTRUCTION:
            return True
        body = self._body(form)
        turns: list[Json] = [
            *self._requests.opening(form),
            *map(_without_images, self._messages),
        ]
        try:
            reply = await self._post({**body, "messages": turns}, self._constraint)
        except Refusal as refusal:
            if blames_form(refusal.words):
                self._chat.forms.drop(self._sent, form)
            return False
        spoken = reply.visible_text
        if not reply.whole or spoken is None or form.is_obeyed(spoken, self._sent):
            return True
        self._chat.forms.note_ignored(self._sent, form)
        return False

    async def _proves(self, form: Form) -> bool:
        """Whether the server heeds ``form``: held to a word that no model would say, it says it."""
        question: Message = {"role": "user", "content": PROOF_QUESTION}
        try:
            reply = await self._post({"messages": [question], **(form.fields(PROOF) or {})}, PROOF)
        except Refusal:
            return False
        return (reply.visible_text or "").strip() in PROOF.options

    async def _reply(self, form: Form) -> Completion:
        """The reply under a form, less what the server turns out not to take."""
        while True:
            body = self._body(form)
            try:
                return await self._post(body, self._constraint, form)
            except Refusal as refusal:
                about_form = form is not INSTRUCTION and blames_form(refusal.words)
                unseen = self._images and not self._chat.sight.proven
                if refusal.too_long or about_form or unseen or not await self._finds_refused(body):
                    raise

    async def _finds_refused(self, body: dict[str, Json]) -> bool:
        """Whether a request passes without one of its optional parts, which is then left out of all
        requests. The form of the constraint is left out first, and then back in."""
        sampling = self._chat.sampling
        sent = body | sampling.of(self._constraint)
        if sampling.differs(self._latest, self._constraint):
            return True
        with sampling.search(sent) as search:
            if search is None:
                return False
            self._searches = True
            try:
                return await self._search(search, body)
            finally:
                self._searches = False

    async def _search(self, search: Search, body: dict[str, Json]) -> bool:
        bare = self._body(INSTRUCTION)
        if len(bare) < len(body) and await self._passes(bare):
            search.confirm_form()
            return False
        while search.next():
            if await self._passes(bare):
                search.confirm()
                return True
        return False

    async def _passes(self, body: dict[str, Json]) -> bool:
        try:
            await self._post(body, self._constraint)
        except Refusal:
            return False
        return True

    def _body(self, form: Form) -> dict[str, Json]:
        messages: list[Json] = [*self._requests.opening(form), *self._messages]
        return {"messages": messages, **self._requests.fields(form)}

    def _request(self, sent: dict[str, Json], form: Form | None) -> Request:
        """A request as it is sent; ``form``: that of a body as ``_body`` makes it."""
        request = None
        if form is not None and self._content is not None:
            request = self._requests.request(form, self._chat.sampling.parts, self._content)
        return request or self._chat.endpoint.request(CHAT, sent)

    async def _post(
        self, body: dict[str, Json], constraint: Constraint, form: Form | None = None
    ) -> Completion:
        """The reply to a request, whose sampling parameters have the names that the server
        accepts."""
        chat = self._chat
        endpoint = chat.endpoint
        assert self._client is not None
        while True:
            sampling = chat.sampling.of(constraint)
            messages = body["messages"]
            assert isinstance(messages, list)
            turns: Json = chat.sampling.messages(messages)
            sent = {"model": chat.model} | body | sampling | {"messages": turns}
            self._latest = sent
            try:
                with model_call(
                    endpoint.api.name, chat.model, server=endpoint.host, port=endpoint.port
                ) as call:
                    reply = await endpoint.post(
                        self._client,
                        self._request(sent, form),
                        self._errand,
                        read=read_completion,
                        final=is_final,
                    )
                    call.spent = reply.usage
            except Refusal as refusal:
                while chat.sampling.searching and not self._searches:
                    await asyncio.sleep(_PAUSE_SECONDS)
                if chat.sampling.adapt(refusal.words, sent):
                    continue
                raise
            chat.sampling.accept(body | sampling)
            self._spent = reply.usage if self._spent is None else self._spent + reply.usage
            return reply

    def _read(self, reply: Completion) -> Answer:
        """The answer that a reply states, or why it states none: never an exception."""
        try:
            return self._answer_in(reply)
        except Exception as problem:  # whatever is wrong with one reply is that value's failure
            return Answer.failed(f"the reply cannot be read ({type(problem).__name__})")

    def _answer_in(self, reply: Completion) -> Answer:
        if reply.refusal:
            refusal = without_secrets(reply.refusal, self._chat.endpoint.key)
            return Answer.failed(f"the model refused: {refusal!r}")
        if reply.finish == "content_filter":
            return Answer.failed("the server's content filter stopped the answer")
        if self._constraint.max_tokens:  # a reason: what the model thinks, to its end or not
            return Answer(reply.reason, finish="length" if reply.finish == "length" else "complete")
        spoken = reply.visible_text
        text = self._expected_score(reply) or self._requests.read(reply.text)
        if reply.finish == "length":
            if self._constraint.kind == "text" and text:
                return Answer(text, finish="length")
            within = spoken is None or (
                not spoken.strip() and (reply.thought or reply.text.strip())
            )
            where = f"{' within a thought' * bool(within)} at {self._chat.max_tokens} tokens"
            return Answer.failed(f"cut off{where}")
        if text is None and spoken is None:
            return Answer.failed("ended within a thought")
        if text is None:
            shown_text = without_secrets(reply.text[:_SHOWN_FROM].strip(), self._chat.endpoint.key)
            shown = repr(shown_text[:_SHOWN]) if shown_text else "nothing"
            return Answer.failed(f"answered {shown}, which is not {self._constraint}")
        if self._requests.distribution is not None:
            shares = self._shares(reply, text)
            stated = shares and distribution_of(shares, self._requests.distribution)
            return Answer(stated) if stated else Answer.failed(_NO_ODDS)
        return Answer(text, logprob=self._logprob(reply, text))

    def _shares(self, reply: Completion, text: str) -> dict[str, float] | None:
        """The shares of the options or points of a scale, if the server returns them."""
        if not reply.tokens or not reply.whole:
            return None
        options = closed_set(self._constraint)
        if options is None:
            odds = point_odds(reply.tokens, self._constraint)
            return {str(point): share for point, share in odds.items()}
        replies = closed_set(self._sent) or options
        shares = written_shares(reply.tokens, replies, replies[options.index(text)])
        return None if shares is None else dict(zip(options, shares, strict=True))

    def _logprob(self, reply: Completion, text: str) -> float | None:
        """The log probability of the answer among the options of its closed set, if the server
        returns it."""
        options = closed_set(self._constraint)
        if not options or not reply.tokens or not reply.whole:
            return None
        replies = closed_set(self._sent) or options
        return written_odds(reply.tokens, replies, replies[options.index(text)])

    def _expected_score(self, reply: Completion) -> str | None:
        """The score that the odds of the reply let expect; None if the server tells none."""
        if self._constraint.kind != "score" or not reply.whole or reply.visible_text is None:
            return None
        return of_tokens(reply.tokens, self._constraint)


def is_final(refusal: str) -> bool:
    """True if a server's words of refusal are about the fields of a request, not its text, or about
    images that it never takes."""
    about_fields = blames_form(refusal) or blames_odds(refusal) or blames_part(refusal)
    return about_fields or _sees_nothing(refusal)


def _sees_nothing(refusal: str) -> bool:
    """True for what llama-server says, with status 500, without a projector for images."""
    return "mmproj" in refusal or "image input is not supported" in refusal


def _correction(reply: str, constraint: Constraint) -> list[Message]:
    """The messages that follow a reply outside the constraint.

    Asking the same again would give the same: decoding is greedy.
    """
    wanted = f"That is not a valid answer. Answer with {constraint} and nothing else."
    return [{"role": "assistant", "content": reply}, {"role": "user", "content": wanted}]


def _without_images(message: Message) -> Message:
    """The message with its texts alone."""
    parts = message["content"]
    if not isinstance(parts, list):
        return message
    return {**message, "content": [part for part in parts if not url_in(part)]}


def _url(value: str) -> str:
    """The URL of a value that is an image; '' for a text."""
    return url_of(value) if is_image(value) else ""
