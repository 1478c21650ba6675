"""Regular expressions of names, literals and keywords, in the syntax that llguidance takes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from blendfusion.models.constraints.constraint import regex_of
from blendfusion.services.ask.schema.names import is_reserved
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import quoted_name

BLANK = r"[ \t\n]+"
MAYBE = r"[ \t\n]*"
NUMBER = r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,4})?"
WHOLE = r"[1-9][0-9]{0,3}"
STRING = r"'([^'\\\x00-\x1f]|''){0,60}'"
PATTERN = r"'%?([^'\\\x00-\x1f]|''){1,60}%?'"
QUESTION = r"'[A-Za-z]([^'{}\\\x00-\x1f]|''){2,199}'"
LABEL = r"'[A-Za-z0-9]([^'{}\\\x00-\x1f]|''){2,40}'"
DATE = f"'{regex_of(Constraint('date'))}'"
"""Any day of the years 1 to 9999."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
_SPECIAL = re.compile(r"['.^$*+?()\[\]{}|/&~#-]")
_LONGEST_VALUE = 100
"""Characters; a longer value is no literal of the grammar."""


def keyword(words: str) -> str:
    """Words with blanks between them.

    >>> keyword("as")
    '(as|AS|As)'
    """
    return BLANK.join(map(in_cases, words.split()))


def in_cases(*words: str) -> str:
    """One of the words: lower case, upper case, or with one capital letter. Where a model wants
    something else than the grammar lets it write, it would take to words such as lOwEr."""
    return f"({'|'.join(form for word in words for form in (word, word.upper(), word.title()))})"


def between(words: str) -> str:
    """A keyword with blanks around it."""
    return f"{BLANK}{keyword(words)}{BLANK}"


def name(text: str) -> str:
    """A name of the catalogue: quoted, or, if it is a plain word, in any letter case."""
    exact = re.escape(quoted_name(text))
    if _PLAIN.fullmatch(text) and not is_reserved(text):
        return f"({word(text)}|{exact})"
    return exact


def plain(text: str) -> str:
    """A name in its shorter form: not in quotes if it is a plain word."""
    if _PLAIN.fullmatch(text) and not is_reserved(text):
        return word(text)
    return re.escape(quoted_name(text))


def word(text: str) -> str:
    """A plain word, in any letter case."""
    return f"(?i:{text})"


def literals(values: Iterable[str]) -> str:
    """Texts as SQL literals; those that no literal can hold are left out. '' for none."""
    kept = [v for v in dict.fromkeys(values) if len(v) <= _LONGEST_VALUE and not _UNSAFE.search(v)]
    return f"'({'|'.join(_SPECIAL.sub(_escape, value) for value in kept)})'" if kept else ""


def _escape(found: re.Match[str]) -> str:
    return "''" if found[0] == "'" else f"\\{found[0]}"


def regex(pattern: str) -> str:
    """A pattern as Lark writes it, between slashes."""
    return "/" + re.sub(r"(?<!\\)/", r"\\/", pattern) + "/"
