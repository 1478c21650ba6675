"""Reads the arguments of one call in braces, by the names of its function's parameters."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import close_matches
from blendfusion.language.query_text.rewriter import Weaver, Written
from blendfusion.language.query_text.source_map import Piece
from blendfusion.services.dialects.blendsql.signatures import IGNORED, NO_ARGUMENT, Signature
from blendfusion.services.dialects.common.braces import Argument, Braces
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.declare.json_schema import is_json
from blendfusion.udfs.declare.returns import constraint_named

_TYPES = {"substring": "text"}
_FEW = "Give one of the types str, int, float, bool, date, list[str], list[int], …"


class Arguments:
    """The arguments of one call, by the names that its function gives them."""

    def __init__(self, weaver: Weaver, call: Braces, signature: Signature) -> None:
        self.weaver = weaver
        self.reader = weaver.reader
        self.call = call
        self.signature = signature
        self.named: dict[str, Argument] = {}
        self.values: list[Argument] = []
        """The values of LLMMap and of functions of images."""
        self.contexts: list[Argument] = []
        """The contexts of the other functions."""
        for place, given in enumerate(call.given):
            self._take(place, given)
        first = signature.positional[:1]
        if (
            first != ("values",)
            and first
            and first[0] not in self.named
            and "question" not in self.named
        ):
            raise self.reader.refusal(
                call.at, f"{call.name}: the {first[0]} is missing", signature.spelling
            )
        context = self.named.get("context")
        if context is not None and "values" not in signature.positional:
            self.contexts.append(context)

    def _take(self, place: int, given: Argument) -> None:
        name = given.name
        positional = self.signature.positional
        if name is None:
            if any(g.name is not None for g in self.call.given[:place]):
                raise self.reader.refusal(given.start, "a positional argument follows a named one")
            if place < len(positional) and positional[place] != "values":
                self.named[positional[place]] = given
            elif "values" in positional and self.values and self._is_listed(given):
                self.named["options"] = given
            elif "values" in positional:
                self.values.append(given)
            elif positional[0] != "left_on":
                self.contexts.append(given)
            else:
                raise self.reader.refusal(
                    given.start, f"{self.call.name} takes two columns", self.signature.spelling
                )
            return
        if name == "values" and "values" in positional:
            self.values.append(given)
        elif name in self.named:
            raise self.reader.refusal(given.start, f"{self.call.name}: '{name}' is given twice")
        elif name in self.signature.named or name in positional:
            self.named[name] = given
        elif name in IGNORED or (name in NO_ARGUMENT and self._is_default(name, given)):
            return
        else:
            allowed = [*positional, *sorted(self.signature.named)]
            raise self.reader.refusal(
                given.start - 2,
                f"{self.call.name} takes no '{name}'",
                NO_ARGUMENT.get(name) or close_matches(name, allowed),
            )

    def _is_listed(self, given: Argument) -> bool:
        """``('a', 'b')``: options by position, as earlier versions took them."""
        reader = self.reader
        if not reader.opens(given.start) or reader.close[given.start] != given.stop - 1:
            return False
        parts = reader.parts(given.start + 1, given.stop - 1)
        texts = all(b == a + 1 and reader.kind(a) == TokenType.STRING for a, b in parts)
        return len(parts) > 1 and texts and "options" not in self.named

    def _is_default(self, name: str, given: Argument) -> bool:
        word = self.reader.word(given.start)
        return word in ("NONE", "NULL") or (
            name in ("long_answer", "use_option_aliases") and word == "FALSE"
        )

    def one(self, name: str) -> Argument | None:
        """The argument of a name; None if it was not given, or given as None."""
        given = self.named.get(name)
        none = given is not None and given.stop == given.start + 1
        if given is not None and none and name != "options":
            return None if self.reader.word(given.start) in ("NONE", "NULL") else given
        return given

    def passed_on(self, *names: str) -> list[Written]:
        """The arguments of these names that were given, as ours of the same name."""
        found = ((name, self.one(name)) for name in names)
        return [
            [f"{name} => ", *self.weaver.weave(given.start, given.stop)]
            for name, given in found
            if given is not None
        ]

    def text(self, name: str) -> Written:
        """A text argument as a literal; in old queries some stand in double quotes."""
        given = self.named.get(name)
        if given is None:
            raise self.reader.refusal(
                self.call.at, f"{self.call.name}: the {name} is missing", self.signature.spelling
            )
        start, stop = given.start, given.stop
        token = self.reader.tokens[start]
        if stop == start + 1 and token.token_type == TokenType.IDENTIFIER:
            return [Piece(sql_string(token.text), *self.reader.span(start, stop))]
        parameter = self.reader.source_text(start, stop).startswith("$")
        if stop != start + 1 or not (token.token_type == TokenType.STRING or parameter):
            raise self.reader.refusal(
                start, f"{self.call.name}: the {name} is a text", self.signature.spelling
            )
        return list(self.weaver.weave(start, stop))

    @property
    def quantifier(self) -> str | None:
        """``*``, ``+``, ``{3}``, ``{1,2}`` or ``{2,}``: how many items a list has."""
        given = self.one("quantifier")
        if given is None:
            return None
        text = self._plain(given)
        if constraint_named(f"list{text}") is None:
            raise self.reader.refusal(
                given.start,
                f"quantifier={text!r} is no length",
                "Write '+', '*', '{3}' or '{1,4}'.",
            )
        return text

    @property
    def returns(self) -> str | None:
        """The type as ``returns`` names it, with the quantifier of a list."""
        given = self.one("return_type")
        if given is None:
            return None
        text = self._plain(given).lower()
        if is_json(text):
            return None
        name = _TYPES.get(text, text)
        if constraint_named(name) is None:
            raise self.reader.refusal(given.start, f"return_type={text!r} is not a type", _FEW)
        if self.quantifier is not None:
            listed = name if name.startswith("list") else f"list[{name}]"
            listed = listed.replace("list[str]", "list").replace("list[text]", "list")
            if constraint_named(listed + self.quantifier) is None:
                raise self.reader.refusal(given.start, f"no lists of {text!r}", _FEW)
            return listed + self.quantifier
        return name

    @property
    def schema(self) -> Argument | None:
        """``return_type`` where it is a JSON schema: the answer has fields."""
        given = self.one("return_type")
        if given is None or not is_json(self._plain(given)):
            return None
        for name in ("options", "regex", "quantifier"):
            if self.one(name) is not None:
                raise self.reader.refusal(
                    given.start, f"a JSON schema and {name} exclude each other"
                )
        return given

    @property
    def is_list(self) -> bool:
        """The answer is a list."""
        return (self.returns or "").startswith("list") or self.quantifier is not None

    def _plain(self, given: Argument) -> str:
        token = self.reader.tokens[given.start]
        if given.stop != given.start + 1 or token.token_type not in (
            TokenType.STRING,
            TokenType.IDENTIFIER,
            TokenType.VAR,
        ):
            raise self.reader.refusal(given.start, "a text is expected here")
        return str(token.text)
