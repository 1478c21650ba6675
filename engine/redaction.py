"""Controls which values appear outside of results: in warnings, errors, logs and pages. A leaf
without imports from other packages.

Foreign text in a message (a value, an answer, a server's message) stands in Python's quotes, with
every control character escaped, so that it is distinguishable from the message: see ``in_quotes``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import quote, quote_plus

ShowValues = Literal["auto", "on", "off"]
Redact: TypeAlias = "Callable[[str], str]"
"""A function from a text to the text to show."""

WITHHELD = "…"
"""The placeholder of a hidden value."""

_CHARACTERS = 80
_OF_SERVER = 300
"""Characters of a server's own words that a message repeats."""
_STATUS = re.compile(r"\bHTTP \d{3}: \Z")
_ROW_VALUES = 4
_QUOTED = re.compile(r"""(?<![\w'"\\])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


@dataclass(frozen=True, slots=True)
class Redaction:
    """One session's rule for showing data: its options ``show_values`` and ``redact``."""

    show: ShowValues = "auto"
    redact: Redact | None = None

    def quote(self, value: str | None) -> str:
        r"""One value for a warning or an error: after ``redact``, cut at 80 characters, in quotes,
        with control characters escaped. WITHHELD if values are hidden; NULL is None.

        >>> Redaction("on").quote("a\x1b[1m"), Redaction("on", str.upper).quote("a")
        ("'a\\x1b[1m'", "'A'")
        """
        if value is None:
            return "None"
        return in_quotes(self._redact(value)) if self.shows else WITHHELD

    def row(self, values: Sequence[str | None]) -> str:
        """The first values of a request, each as ``quote``.

        >>> Redaction("on").row(("a", None)), Redaction("off").row(("a", "b"))
        ("'a', None", '…')
        """
        if not self.shows:
            return WITHHELD
        return ", ".join(self.quote(value) for value in values[:_ROW_VALUES])

    def reason(self, text: str) -> str:
        """A message whose quotations are shown like values. What a server says of a request stands
        behind its status, and has nothing of the request's texts in it: only ``off`` hides it.

        >>> Redaction().reason("HTTP 400: 'System role not supported'")
        "HTTP 400: 'System role not supported'"
        >>> Redaction("off").reason("answered 'Ann Lee', which is not a date")
        'answered …, which is not a date'
        """

        def show_quotation(found: re.Match[str]) -> str:
            of_server = _STATUS.search(text, max(0, found.start() - 12), found.start()) is not None
            if not self.shows and (self.show == "off" or not of_server):
                return WITHHELD
            try:
                literal = ast.literal_eval(found[0])
            except (SyntaxError, ValueError):  # the quotation is foreign
                literal = found[0]
            most = _OF_SERVER if of_server else _CHARACTERS
            return in_quotes(self._redact(str(literal)), most)

        if self.shows and self.redact is None:
            return printable(text)
        return printable(_QUOTED.sub(show_quotation, text))

    @property
    def remedy(self) -> str:
        """A sentence on how to show hidden values; '' if nothing is hidden."""
        return self.remedy_by("show_values='on', or --show-values on,")

    def remedy_by(self, means: str) -> str:
        """The sentence with the means of one front end."""
        return "" if self.shows else f"Values are withheld here: {means} shows them."

    def page(self, text: str) -> str:
        """A whole text that the user requested, such as a page of sample prompts: after ``redact``,
        WITHHELD if ``show_values`` is "off". Not escaped for HTML."""
        return WITHHELD if self.show == "off" else self._redact(text)

    def pass_on(self, text: str) -> str:
        """A part of a message that may be a value: through ``redact``, or WITHHELD."""
        return printable(self._redact(text)) if self.shows else WITHHELD

    @property
    def shows_all(self) -> bool:
        """Whether values are shown unchanged."""
        return self.shows and self.redact is None

    @property
    def shows(self) -> bool:
        """Whether values are shown, after ``redact``."""
        return self.show == "on" or (self.show == "auto" and _looked_on())

    def _redact(self, text: str) -> str:
        if self.redact is None:
            return text
        try:
            return str(self.redact(text))
        except Exception as problem:  # it must neither reveal a text nor end a query
            return f"(redact failed: {type(problem).__name__})"


def in_quotes(text: str, characters: int = _CHARACTERS) -> str:
    r"""``text`` in quotes, without characters that control a terminal, cut at ``characters``.

    >>> in_quotes("one\ntwo"), in_quotes("abcdef", 4)
    ("'one\\ntwo'", "'abc…'")
    """
    return repr(text if len(text) <= characters else text[: characters - 1] + "…")


def printable(text: str) -> str:
    r"""``text`` with control, format and surrogate characters escaped, except line breaks and tabs.

    >>> printable("a\x1b[2J\u202eb\nc")
    'a\\x1b[2J\\u202eb\nc'
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)


def on_one_line(text: str) -> str:
    r"""``text`` as ``printable`` shows it, with line breaks and tabs escaped, too.

    >>> on_one_line("a\nforged line\t1")
    'a\\nforged line\\t1'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


_CREDENTIALS = re.compile(r"\b(bearer|basic)\s+(?=\S*[\d=]|\S{16})[^\s'\",;]{4,}", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^\s/?#'\"]*@")
_PARAMETER = re.compile(r"([?&;][\w.%~\[\]-]+=)[^\s&;#'\"<>)]+")
_SHORTEST_KEY = 4


def without_secrets(text: str, *keys: str | None) -> str:
    """``text`` without ``keys``, the credentials of HTTP headers, and what may be secret in URLs:
    user, password and the values of query strings.

    >>> without_secrets("GET https://me:pw@host/v1?api-key=k1&v=2 with Bearer sk-1234 and sk-1234", "sk-1234")
    'GET https://…@host/v1?api-key=…&v=… with Bearer … and …'
    """
    for key in keys:
        if key and len(key) >= _SHORTEST_KEY:
            for form in {key, quote(key, safe=""), quote_plus(key)}:
                text = text.replace(form, WITHHELD)
    text = _CREDENTIALS.sub(rf"\1 {WITHHELD}", text)
    text = _USER.sub(f"{WITHHELD}@", text)
    return _PARAMETER.sub(rf"\1{WITHHELD}", text)


def _looked_on() -> bool:
    """Whether standard error is visible to a person: a terminal, an interactive Python, a
    notebook."""
    stream = sys.stderr
    return hasattr(sys, "ps1") or in_notebook() or (stream is not None and stream.isatty())


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")
