"""Reads the schema of an extraction: SQL text, an Arrow schema or a pydantic model."""

from __future__ import annotations

import datetime
import enum
import types
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint, ConstraintKind, StructField
from blendfusion.udfs.declare.returns import MOST_PRECISION, decimal_constraint

SchemaLike: TypeAlias = "str | pa.Schema | pa.StructType | type[Any]"
"""SQL text as in CREATE TABLE, JSON text, an Arrow schema or struct type, or a pydantic model
class."""

MOST_FIELDS = 64
"""Maximum number of fields of a schema, those of its structs included."""
MOST_DEPTH = 16
"""Structs and lists in one another."""
_SHOWN = 80
"""Characters of a field that an error repeats."""

FORM = "'name TEXT, year INT COMMENT ''of release'', tags LIST, season IN (''spring'', ''summer'')'"
_TYPES = (
    "TEXT, INT, FLOAT, DECIMAL(10, 2), BOOLEAN, DATE, TIMESTAMP, LIST (of TEXT), STRUCT(name TYPE, …), TYPE[] or "
    "IN ('a', 'b')"
)

_KINDS: Mapping[ConstraintKind, tuple[str, ...]] = {
    "text": ("TEXT", "VARCHAR", "CHAR", "NVARCHAR"),
    "integer": (
        *("INT", "TINYINT", "SMALLINT", "BIGINT"),
        *("UTINYINT", "USMALLINT", "UINT", "UBIGINT"),
    ),
    "number": ("FLOAT", "DOUBLE", "DECIMAL"),
    "boolean": ("BOOLEAN",),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"),
}
"""The kinds of scalars by sqlglot's names of types; the first is ours."""
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}


def fields_of(schema: str) -> tuple[StructField, ...]:
    """The fields that a schema in SQL declares, in their order.

    A field is ``name TYPE [COMMENT 'what it means']`` or ``name IN ('a', 'b')``, as in CREATE
    TABLE; a name that is no plain word stands in double quotes. Raises ArgumentError, which names
    the field.

    >>> [(f.name, str(f.constraint)) for f in fields_of("title TEXT, years INT[], mood IN ('a', 'b')")]
    [('title', 'text'), ('years', 'list of integer'), ('mood', 'one of {a, b}')]
    """
    fields = _check([_field(text) for text in _definitions(schema)])
    if _count(fields) > MOST_FIELDS:
        raise _error(f"the schema has more than {MOST_FIELDS} fields", "Extract in several calls.")
    return fields


def text_of(schema: SchemaLike) -> str:
    """A schema as SQL text, as ``fields_of`` reads it.

    Of Arrow fields count name, type and the metadata "description", of a pydantic model the names,
    annotations and descriptions of its fields; widths, defaults, validators and whether NULL is
    allowed do not. Raises ArgumentError for a type that cannot be extracted.
    """
    if isinstance(schema, str):
        return schema
    if isinstance(schema, pa.Schema | pa.StructType):
        return schema_text([_arrow_field(field) for field in schema])
    if isinstance(schema, type) and isinstance(getattr(schema, "model_fields", None), Mapping):
        try:
            return schema_text(_model_fields(schema))
        except RecursionError:
            raise _error(f"the model {schema.__name__} has itself for a field") from None
    raise _error(
        f"the schema is {schema!r}",
        "It is text, a pyarrow.Schema or struct type, or a pydantic model class.",
    )


def schema_text(fields: Sequence[StructField]) -> str:
    """The fields as SQL text.

    >>> schema_text(fields_of("a VARCHAR comment 'it''s', b IN ('x')"))
    "a TEXT COMMENT 'it''s', b IN ('x')"
    """
    return ", ".join(map(_written_field, fields))


# -- SQL text --------------------------------------------------------------------------------


def _definitions(schema: str) -> Iterator[str]:
    """The text of each field without comments; fields are separated by commas outside of
    brackets."""
    try:
        tokens = list(Tokenizer().tokenize(schema))
    except TokenError as problem:
        raise _error(f"the schema {_short(schema)!r} cannot be read: {problem}") from None
    if not tokens:
        raise _error("the schema is empty")
    depth, begun = 0, 0
    for at, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MOST_DEPTH:
            raise _error(f"the schema has more than {MOST_DEPTH} types in one another")
        if depth == 0 and token.token_type == TokenType.COMMA:
            yield _definition(schema, tokens[begun:at])
            begun = at + 1
    yield _definition(schema, tokens[begun:])


_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.LT)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.GT)


def _definition(schema: str, tokens: Sequence[Token]) -> str:
    """A field as sqlglot reads it: its name in quotes, since it may be a word of SQL, and
    ``IN (…)`` as the type that it stands for."""
    if not tokens:
        raise _error("a field is missing between commas")
    name, *rest = tokens
    if name.token_type == TokenType.STRING or not name.text:
        raise _error(f"{schema[name.start : name.end + 1]} is no name of a field")
    parts = [exp.to_identifier(name.text, quoted=True).sql()]
    for at, token in enumerate(rest):
        listed = token.token_type == TokenType.IN and at + 1 < len(rest)
        parts.append("ENUM" if listed else schema[token.start : token.end + 1])
    return " ".join(parts)


def _field(definition: str) -> StructField:
    try:
        table = parse_one(f"CREATE TABLE t ({definition})")
    except (ParseError, TokenError, RecursionError):
        raise _error(f"the field {_short(definition)} cannot be read") from None
    columns = table.this.expressions if isinstance(table.this, exp.Schema) else []
    if len(columns) != 1 or not isinstance(columns[0], exp.ColumnDef):
        raise _error(f"the field {_short(definition)} has no type", f"Types are {_TYPES}.")
    return _field_of(columns[0])


def _short(definition: str) -> str:
    return definition if len(definition) <= _SHOWN else f"{definition[:_SHOWN]}…"


def _field_of(column: exp.ColumnDef) -> StructField:
    if column.kind is None:
        raise _error(f"the field {column.name} has no type", f"Types are {_TYPES}.")
    description = ""
    for column_constraint in column.constraints:
        if not isinstance(column_constraint.kind, exp.CommentColumnConstraint):
            hint = "Any field may be NULL: say what it is in a COMMENT 'text'."
            raise _error(
                f"the field {column.name}: {column_constraint.sql()} is not possible", hint
            )
        description = str(column_constraint.kind.this.this)
    return StructField(column.name, _constraint(column.name, column.kind), description)


def _constraint(name: str, kind: exp.DataType) -> Constraint:
    if not isinstance(kind, exp.DataType) or not isinstance(kind.this, exp.DataType.Type):
        raise _unknown_type(name, kind.sql())
    inner = kind.expressions
    if kind.this in (exp.DataType.Type.ENUM, exp.DataType.Type.ENUM8):
        return Constraint("choice", options=_options(name, inner))
    if kind.this in _LISTS:
        if inner and isinstance(inner[0], exp.DataType) and inner[0].this in _LISTS:
            raise _error(f"the field {name} is a list of lists", "Items of a list may be structs.")
        return Constraint("list", item=_constraint(name, inner[0]) if inner else Constraint())
    if kind.this == exp.DataType.Type.STRUCT:
        return Constraint("struct", fields=_check([_member(name, part) for part in inner], name))
    if kind.this == exp.DataType.Type.DECIMAL and inner:
        return _decimal(name, kind)
    if kind.this.name in _KIND_OF and not inner:
        return Constraint(_KIND_OF[kind.this.name])
    raise _unknown_type(name, kind.sql())


_LISTS = (exp.DataType.Type.LIST, exp.DataType.Type.ARRAY)


def _decimal(name: str, kind: exp.DataType) -> Constraint:
    numbers = [part.this.this for part in kind.expressions]
    digits = [int(n) for n in numbers if str(n).isdigit()]
    found = decimal_constraint(*[*digits, 0][:2]) if len(digits) == len(numbers) < 3 else None
    if found is None:
        hint = f"Write DECIMAL(10, 2): {MOST_PRECISION} digits at most, 2 of them behind the point."
        raise _error(f"the field {name}: {kind.sql()} is no type", hint)
    return found


def _member(name: str, part: exp.Expr) -> StructField:
    if not isinstance(part, exp.ColumnDef):
        raise _error(f"the field {name}: {part.sql()} in its struct has no name and type")
    return _field_of(part)


def _options(name: str, given: Sequence[exp.Expr]) -> tuple[str, ...]:
    texts = [part.this for part in given if isinstance(part, exp.Literal) and part.is_string]
    if not given or len(texts) != len(given) or not all(map(str.strip, texts)):
        raise _error(f"the field {name}: its values must be texts", f"Write {name} IN ('a', 'b').")
    if len(set(texts)) < len(texts):
        raise _error(f"the field {name}: a value is given twice")
    return tuple(texts)


def _check(fields: Sequence[StructField], within: str = "") -> tuple[StructField, ...]:
    names = [field.name for field in fields]
    where = f"{within} has" if within else "the schema has"
    if not names:
        raise _error(f"{where} no fields")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise _error(f"{where} the field {repeated} twice")
    return tuple(fields)


def _count(fields: Sequence[StructField]) -> int:
    return sum(1 + _count((field.constraint.item or field.constraint).fields) for field in fields)


def _written_field(field: StructField, *, in_quotes: bool = False) -> str:
    comment = f" COMMENT {_quote(field.description)}" if field.description else ""
    plain = field.name.isidentifier() and field.name.isascii() and not in_quotes
    name = exp.to_identifier(field.name, quoted=not plain).sql()
    return f"{name} {_written_type(field.constraint)}{comment}"


def _written_type(constraint: Constraint) -> str:
    if constraint.kind == "choice":
        return f"IN ({', '.join(map(_quote, constraint.options))})"
    if constraint.kind == "list":
        return f"{_written_type(constraint.item or Constraint())}[]"
    if constraint.kind == "struct":
        # In a struct, sqlglot takes words of SQL for names in quotes only.
        parts = [_written_field(member, in_quotes=True) for member in constraint.fields]
        return f"STRUCT({', '.join(parts)})"
    if constraint.digits is not None:
        return "DECIMAL({}, {})".format(*constraint.digits)
    return _KINDS[constraint.kind][0]


def _quote(text: str) -> str:
    return exp.Literal.string(text).sql()


# -- Arrow and pydantic ----------------------------------------------------------------------


def _arrow_field(field: pa.Field) -> StructField:
    description = (field.metadata or {}).get(b"description", b"").decode()
    return StructField(field.name, _of_arrow(field.name, field.type), description)


def _of_arrow(name: str, kind: pa.DataType) -> Constraint:
    is_a = pa.types
    if is_a.is_struct(kind):
        return Constraint("struct", fields=tuple(_arrow_field(part) for part in kind))
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return Constraint("list", item=_of_arrow(name, kind.value_type))
    if is_a.is_dictionary(kind):
        return _of_arrow(name, kind.value_type)
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return Constraint()
    if is_a.is_boolean(kind):
        return Constraint("boolean")
    if is_a.is_integer(kind):
        return Constraint("integer")
    if is_a.is_decimal(kind):
        return decimal_constraint(kind.precision, kind.scale) or Constraint("number")
    if is_a.is_floating(kind):
        return Constraint("number")
    if is_a.is_date(kind):
        return Constraint("date")
    if is_a.is_timestamp(kind) and kind.tz is None:
        return Constraint("timestamp")
    raise _unknown_type(name, str(kind))


def _model_fields(model: type[Any]) -> list[StructField]:
    return [
        StructField(name, _of_annotation(name, info.annotation), info.description or "")
        for name, info in model.model_fields.items()
    ]


_OF_PYTHON: Mapping[object, ConstraintKind] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "number",
    datetime.date: "date",
    datetime.datetime: "timestamp",
}


def _of_annotation(name: str, annotation: Any) -> Constraint:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        others = [argument for argument in arguments if argument is not type(None)]
        if len(others) == 1:
            return _of_annotation(name, others[0])
    if origin is Literal and all(isinstance(argument, str) for argument in arguments):
        return Constraint("choice", options=arguments)
    if origin in (list, Sequence, tuple, set, frozenset) and [*arguments[1:]] in ([], [...]):
        return Constraint("list", item=_of_annotation(name, arguments[0]))
    if annotation is list:
        return Constraint("list", item=Constraint())
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        values = tuple(member.value for member in annotation)
        if all(isinstance(value, str) for value in values):
            return Constraint("choice", options=values)
    if isinstance(getattr(annotation, "model_fields", None), Mapping):
        return Constraint("struct", fields=tuple(_model_fields(annotation)))
    if annotation in _OF_PYTHON:
        return Constraint(_OF_PYTHON[annotation])
    raise _unknown_type(name, getattr(annotation, "__name__", str(annotation)))


def _unknown_type(name: str, kind: str) -> ArgumentError:
    return _error(f"the field {name}: {kind} is no type that it can have", f"Types are {_TYPES}.")


def _error(problem: str, hint: str = f"Write the fields as in {FORM}.") -> ArgumentError:
    return ArgumentError(f"{problem}", hint=hint)
