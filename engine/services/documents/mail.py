"""E-mails: their subject, who wrote to whom, their text, and the names of what is attached."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from email import policy
from email.errors import (
    CloseBoundaryNotFoundDefect,
    InvalidBase64CharactersDefect,
    InvalidBase64LengthDefect,
    InvalidBase64PaddingDefect,
)
from email.message import EmailMessage
from email.parser import BytesParser
from typing import cast

from blendfusion.services.documents.blocks import Block, Unreadable
from blendfusion.services.documents.html import decode, decode_as, html_blocks
from blendfusion.services.documents.plain import text_pages

_SHOWN = ("From", "To", "Cc", "Date")
_DEEPEST = 20
_FLOWED = re.compile(r"^(>*) ?(.*)$", re.MULTILINE)
"""How often a line is quoted, and what follows, without the blank that protects it."""
_DAMAGES = (
    InvalidBase64CharactersDefect,
    InvalidBase64LengthDefect,
    InvalidBase64PaddingDefect,
)


def mail_pages(data: bytes) -> Iterator[tuple[None, list[Block] | str]]:
    """The blocks of a message, and why a part of it cannot be read. Raises Unreadable."""
    message = BytesParser(policy=policy.default).parsebytes(data.removeprefix(codecs.BOM_UTF8))
    if not message.keys():
        raise Unreadable("it is no e-mail: it does not begin with a header")
    mail = _Mail()
    mail.read(message, 0)
    yield None, mail.blocks
    yield from ((None, problem) for problem in dict.fromkeys(mail.problems))


class _Mail:
    """Puts together the blocks of the parts of a message."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.problems: list[str] = []

    def read(self, message: EmailMessage, depth: int) -> None:
        """Read a message. One that it forwards is ``depth`` levels below the first."""
        subject = _field(message, "Subject")
        if subject:
            self.blocks.append(Block("title", subject))
        fields = [f"{name}: {value}" for name in _SHOWN if (value := _field(message, name))]
        if fields:
            self.blocks.append(Block("paragraph", "\n".join(fields)))
        attached: list[str] = []
        self._part(message, depth, attached)
        if attached:
            self.blocks.append(Block("list", "\n".join(attached)))

    def _part(self, part: EmailMessage, depth: int, attached: list[str]) -> None:
        if depth > _DEEPEST:
            raise Unreadable(f"its parts are nested deeper than {_DEEPEST} levels")
        if any(isinstance(defect, CloseBoundaryNotFoundDefect) for defect in part.defects):
            self.problems.append("its end is missing")
        kind = part.get_content_type()
        if kind == "message/rfc822":
            for inner in part.iter_parts():
                self.read(cast(EmailMessage, inner), depth + 1)
        elif kind == "message/delivery-status":
            found = [item for each in part.iter_parts() for item in each.items()]
            fields = "\n".join(f"{name}: {value}" for name, value in found)
            self.blocks += [Block("paragraph", fields)] if fields else []
        elif kind == "multipart/alternative":
            self._best([cast(EmailMessage, inner) for inner in part.iter_parts()], depth, attached)
        elif part.is_multipart():
            for inner in part.iter_parts():
                self._part(cast(EmailMessage, inner), depth + 1, attached)
        elif part.get_content_maintype() != "text" or part.is_attachment():
            attached.append(self._attachment(part))
        else:
            self.blocks += self._text(part)

    def _best(self, forms: list[EmailMessage], depth: int, attached: list[str]) -> None:
        """The richest form of a text; one without text gives way to the next."""
        before = len(self.blocks)
        for form in sorted(forms, key=_wealth, reverse=True):
            self._part(form, depth + 1, attached)
            if len(self.blocks) > before:
                return

    def _text(self, part: EmailMessage) -> list[Block]:
        data = self._content(part)
        charset = part.get_content_charset()
        text = decode_as(data, charset) if charset else None
        if part.get_content_subtype() in ("html", "xhtml"):
            return html_blocks(data if text is None else text)
        form, without = (str(part.get_param(name)).lower() for name in ("format", "delsp"))
        if form == "flowed":
            text = _flow(decode(data) if text is None else text, without == "yes")
        pages = text_pages(data if text is None else text)
        return [block for page in pages for block in page]

    def _attachment(self, part: EmailMessage) -> str:
        name = part.get_filename() or "without a name"
        size = len(self._content(part))
        return f"• attached: {' '.join(name.split())} ({part.get_content_type()}, {size:,} bytes)"

    def _content(self, part: EmailMessage) -> bytes:
        data = part.get_payload(decode=True)
        if any(isinstance(defect, _DAMAGES) for defect in part.defects):
            self.problems.append("the coding of a part is damaged")
        return data if isinstance(data, bytes) else b""


def _wealth(form: EmailMessage) -> int:
    """HTML, which may have images, is the richest, and what is no text the poorest."""
    kinds = {part.get_content_type() for part in form.walk()}
    return 2 if "text/html" in kinds else int("text/plain" in kinds)


def _field(message: EmailMessage, name: str) -> str:
    """The values of a field, in one line."""
    return " ".join(", ".join(map(str, message.get_all(name, ()))).split())


def _flow(text: str, without_blank: bool) -> str:
    """A text of the form ``flowed``, in which a blank at the end of a line says that the line goes
    on, with these lines whole."""
    found: list[str] = []
    quoted, goes_on = "", False
    for marks, rest in _FLOWED.findall(text.replace("\r\n", "\n")):
        signs = rest == "-- "
        if goes_on and marks == quoted and not signs:
            found[-1] = (found[-1][:-1] if without_blank else found[-1]) + rest
        else:
            found.append(f"{marks} {rest}".lstrip(" ") if marks else rest)
        quoted, goes_on = marks, rest.endswith(" ") and not signs
    return "\n".join(found)
