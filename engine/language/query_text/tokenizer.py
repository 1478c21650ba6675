"""Splits SQL into tokens as DataFusion does: dollar-quoted and escaped strings are strings,
comments are blanks, and no statement hides what stands behind its first word."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

_TEMPLATES = ("{{", "{%", "/*+")


class _Tokenizer(Tokenizer):
    COMMANDS = set()  # noqa: RUF012
    HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012 sqlglot declares these
    BYTE_STRINGS = [("e'", "'"), ("E'", "'")]  # noqa: RUF012
    BYTE_STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012
    HEREDOC_STRINGS = ["$"]  # noqa: RUF012
    HEREDOC_TAG_IS_IDENTIFIER = True
    HEREDOC_STRING_ALTERNATIVE = TokenType.VAR
    VAR_SINGLE_TOKENS = {"$"}  # noqa: RUF012
    SINGLE_TOKENS = {**Tokenizer.SINGLE_TOKENS, "$": TokenType.HEREDOC_STRING}  # noqa: RUF012
    KEYWORDS = {  # noqa: RUF012
        word: kind
        for word, kind in Tokenizer.KEYWORDS.items()
        if not word.startswith(_TEMPLATES) and not word.endswith(("%}", "}}"))
    }


class _OfThread(threading.local):
    """The tokenizer of a thread: to make one takes longer than to read a short text."""

    def __init__(self) -> None:
        self.tokenizer = _Tokenizer()


_own = _OfThread()
QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_VOCABULARY = {*_Tokenizer.KEYWORDS.values(), *_Tokenizer.SINGLE_TOKENS.values()} - {
    *QUOTED,
    *(TokenType.VAR, TokenType.NUMBER, TokenType.HEREDOC_STRING, TokenType.UNKNOWN),
}
_STRINGS = (TokenType.HEREDOC_STRING, TokenType.NATIONAL_STRING)


class Brackets(NamedTuple):
    """The places of brackets among tokens, which nobody changes."""

    close: dict[int, int]
    """Each that is closed, with its other."""
    open: dict[int, int]
    """The other way round."""
    balanced: bool
    """Every bracket has its other."""


class Sql(str):
    """A text that is tokenised at most once. A part or a translation of it reuses its tokens,
    except for the pieces that were rewritten (``source_map``)."""

    _made: Callable[[], list[Token]] | None

    def __new__(cls, text: str, made: Callable[[], list[Token]] | None = None) -> Sql:
        """``text``, whose tokens ``made`` knows without reading it."""
        self = super().__new__(cls, text)
        self._made = made
        return self

    @cached_property
    def tokens(self) -> list[Token]:
        """See ``tokenize``."""
        made, self._made = self._made, None
        return _read(self) if made is None else made()

    @cached_property
    def words(self) -> list[str]:
        """The word of each token, which nobody changes: see ``word``."""
        return [word(token) for token in self.tokens]

    @cached_property
    def brackets(self) -> Brackets:
        """Its brackets."""
        return _match(self.tokens)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def sql_of(text: str) -> Sql:
    """Wraps ``text`` as an ``Sql``, whose tokens are computed once."""
    return text if isinstance(text, Sql) else Sql(text)


def tokenize(sql: str) -> list[Token]:
    """The tokens of ``sql``, which nobody changes; none if it cannot be read (DataFusion will say
    why)."""
    return sql.tokens if isinstance(sql, Sql) else _read(sql)


_PARAMETER = re.compile(r"(?<![\w$])\$(?=\w+(?![\w$]))")
_AS_STRING = re.compile(r"(?<![\w$])\$\w+[^\w\s$][^\s$]*\$")
_DOLLAR = "\ue000"
"""Stands for the dollar of a parameter: sqlglot reads ``$1,$2`` as the beginning of a string."""


def _read(sql: str) -> list[Token]:
    hides = "$" in sql and _DOLLAR not in sql and bool(_AS_STRING.search(sql))
    try:
        tokens = _own.tokenizer.tokenize(_PARAMETER.sub(_DOLLAR, sql) if hides else str(sql))
    except TokenError:
        return []
    found: list[Token] = []
    parted = "--" in sql or "/*" in sql  # a comment may part the words of a keyword
    for token in tokens:
        kind = token.token_type
        if hides and _DOLLAR in token.text:
            token = _as(kind, token.text.replace(_DOLLAR, "$"), token)
        if kind == TokenType.BYTE_STRING:
            token = _as(TokenType.STRING, _unescape(sql[token.start + 2 : token.end]), token)
        elif kind in _STRINGS:
            token = _as(TokenType.STRING, token.text, token)
        elif found and sql[found[-1].start] == "$" and found[-1].text == "$":
            token = _as(TokenType.VAR, f"${token.text}", token, found.pop().start)
        elif parted and found and found[-1].token_type not in QUOTED:
            text = f"{found[-1].text} {token.text}"
            whole = _Tokenizer.KEYWORDS.get(text.upper())
            if whole is not None:
                token = _as(whole, text, token, found.pop().start)
        found.append(token)
    return found


def _match(tokens: Sequence[Token]) -> Brackets:
    close: dict[int, int] = {}
    opened: list[int] = []
    balanced = True
    for i, token in enumerate(tokens):
        change = nesting(token)
        if change > 0:
            opened.append(i)
        elif change < 0 and opened:
            close[opened.pop()] = i
        elif change < 0:
            balanced = False
    return Brackets(close, {end: start for start, end in close.items()}, balanced and not opened)


def nesting(token: Token) -> int:
    """By how much the depth of brackets changes at a token: 1, -1 or 0."""
    return (token.token_type in _OPEN) - (token.token_type in _CLOSE)


def word(token: Token) -> str:
    """The first word of a token in upper case; '' for what stands in quotes."""
    if token.token_type in QUOTED or not token.text:
        return ""
    return token.text.split()[0].upper()


def is_keyword(token: Token) -> bool:
    """Whether a token is a keyword or a sign of SQL: no name, literal or comment."""
    return token.token_type in _VOCABULARY


def curly_quotes(sql: str) -> bool:
    """Whether quotes of typography, as word processors write them, stand outside of text."""
    if _CURLY.isdisjoint(sql):
        return False
    return any(t.token_type not in QUOTED and not _CURLY.isdisjoint(t.text) for t in tokenize(sql))


_CURLY = frozenset("\u2018\u2019\u201c\u201d")


def identifier(token: Token) -> str:
    """The name that an identifier means: DataFusion lowers those without quotes."""
    return token.text if token.token_type in QUOTED else token.text.lower()


def _as(kind: TokenType, text: str, token: Token, start: int | None = None) -> Token:
    first = token.start if start is None else start
    return Token(kind, text, token.line, token.col, first, token.end)


_ESCAPE = re.compile(
    r"''|\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))",
    re.DOTALL,
)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescape(text: str) -> str:
    """The string that ``E'text'`` denotes."""

    def unescape_one(found: re.Match[str]) -> str:
        if found[0] == "''":
            return "'"
        *numbers, octal, letter = found.groups()
        code = next((int(digits, 16) for digits in numbers if digits), None)
        if code is None and octal:
            code = int(octal, 8)
        return chr(code) if code is not None else _LETTERS.get(letter, letter)

    return _ESCAPE.sub(unescape_one, text)
