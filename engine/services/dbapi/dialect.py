"""SQLAlchemy's dialect:
``create_engine("blendfusion://?model=…&table.t=FILE&attach.shop=URL")``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pyarrow as pa
from sqlalchemy import exc, pool, text, types
from sqlalchemy.engine import default, reflection
from sqlalchemy.sql import compiler, elements

from blendfusion.budget import Budget
from blendfusion.datafusion.arrow_types import is_bytes, is_text

_SPARE = "\ue000"
"""A letter of nobody's, for a moment."""
_OF_CONNECT = ("model", "cache", "embedder", "cluster")


class _Compiler(compiler.SQLCompiler):
    def limit_clause(self, select: Any, **kw: Any) -> str:
        # A limit is known when a query is planned.
        parts = (("LIMIT", select._limit_clause), ("OFFSET", select._offset_clause))
        kw["literal_execute"] = True
        return "".join(
            f"\n {word} {self.process(_as_number(part), **kw)}"
            for word, part in parts
            if part is not None
        )

    def visit_frame_clause(self, frameclause: Any, **kw: Any) -> str:
        made: Any = super()
        return str(made.visit_frame_clause(frameclause, **{**kw, "literal_execute": True}))

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._match(binary, "~", **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._match(binary, "!~", **kw)

    def _match(self, binary: Any, operator: str, **kw: Any) -> str:
        if (binary.modifiers or {}).get("flags"):
            raise exc.CompileError("flags of a regular expression are written in it: (?i)…")
        return f"{self.process(binary.left, **kw)} {operator} {self.process(binary.right, **kw)}"

    def visit_like_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "LIKE", **kw)

    def visit_not_like_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "NOT LIKE", **kw)

    def _like(self, binary: Any, word: str, **kw: Any) -> str:
        """LIKE, where a backslash escapes: another escape becomes one, twice it is itself, and a
        backslash becomes two."""
        left, right = (self.process(part, **kw) for part in (binary.left, binary.right))
        escape = (binary.modifiers or {}).get("escape")
        if escape is not None and escape != "\\":
            steps = (("\\", "\\\\"), (escape * 2, _SPARE), (escape, "\\"), (_SPARE, escape))
            for step in steps:
                old, new = (self.render_literal_value(part, types.String()) for part in step)
                right = f"replace({right}, {old}, {new})"
        return f"{left} {word} {right}"


class _Definitions(compiler.DDLCompiler):
    """Tables here have no indexes and no constraints: the statements for them do nothing."""

    def create_table_constraints(self, table: Any, *args: Any, **kw: Any) -> str:
        return ""

    def visit_column_check_constraint(self, constraint: Any, **kw: Any) -> str:
        return ""

    def visit_create_index(
        self,
        create: Any,
        include_schema: bool = False,
        include_table_schema: bool = True,
        **kw: Any,
    ) -> str:
        return "SELECT 1 WHERE FALSE"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        return "SELECT 1 WHERE FALSE"


class _Preparer(compiler.IdentifierPreparer):
    """Quotes every name: ``index`` is a word of DataFusion's, and others will be."""

    def _requires_quotes(self, value: str) -> bool:
        return True


class _Types(compiler.GenericTypeCompiler):
    """Names of types as DataFusion knows them."""


for _theirs, _ours in {
    "FLOAT": "DOUBLE",
    "DATETIME": "TIMESTAMP",
    **dict.fromkeys(("BLOB", "BINARY", "VARBINARY"), "BYTEA"),
    **dict.fromkeys(("TEXT", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "CLOB"), "VARCHAR"),
}.items():
    setattr(_Types, f"visit_{_theirs}", lambda self, type_, _ours=_ours, **kw: _ours)


class BlendFusionDialect(default.DefaultDialect):
    """The dialect. All connections of an engine are one session."""

    name = "blendfusion"
    driver = "blendfusion"
    default_paramstyle = "qmark"
    statement_compiler = _Compiler
    ddl_compiler = _Definitions
    preparer = _Preparer
    type_compiler_cls = _Types
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_enum = False
    supports_alter = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_multivalues_insert = True
    supports_default_values = False
    supports_sequences = False
    supports_comments = False
    postfetch_lastrowid = False
    insert_returning = False
    tuple_in_values = False
    cte_follows_insert = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        from blendfusion.services.dbapi import module

        return module

    @classmethod
    def get_pool_class(cls, url: Any) -> type[pool.Pool]:
        return pool.StaticPool

    def create_connect_args(self, url: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of ``connect``: see ``arguments_of``."""
        return [], arguments_of(url.query)

    def initialize(self, connection: Any) -> None:
        self.default_schema_name = "public"
        self.server_version_info = None

    def do_rollback(self, dbapi_connection: Any) -> None:
        pass

    def do_ping(self, dbapi_connection: Any) -> bool:
        return True

    # --- reflection ------------------------------------------------------------------------------

    @reflection.cache  # type: ignore[untyped-decorator,unused-ignore]
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        query = "SELECT DISTINCT table_schema FROM information_schema.tables ORDER BY 1"
        found = [name for (name,) in connection.execute(text(query))]
        return sorted({*found, "public"} - {"information_schema"})

    @reflection.cache  # type: ignore[untyped-decorator,unused-ignore]
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return list(self._names(connection, schema, views=False))

    @reflection.cache  # type: ignore[untyped-decorator,unused-ignore]
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return list(self._names(connection, schema, views=True))

    def _names(self, connection: Any, schema: str | None, *, views: bool) -> Iterator[str]:
        query = (
            "SELECT DISTINCT table_name, table_type FROM information_schema.tables "
            "WHERE table_schema = :schema ORDER BY 1"
        )
        for name, kind in connection.execute(text(query), {"schema": schema or "public"}):
            if (kind == "VIEW") == views:
                yield name

    @reflection.cache  # type: ignore[untyped-decorator,unused-ignore]
    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return any(
            table_name in self._names(connection, schema, views=views) for views in (False, True)
        )

    @reflection.cache  # type: ignore[untyped-decorator,unused-ignore]
    def get_view_definition(
        self, connection: Any, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        query = (
            "SELECT definition FROM information_schema.views "
            "WHERE table_schema = :schema AND table_name = :name AND definition IS NOT NULL"
        )
        values = {"schema": schema or "public", "name": view_name}
        for (definition,) in connection.execute(text(query), values):
            return str(definition)
        raise exc.NoSuchTableError(view_name)

    @reflection.cache  # type: ignore[untyped-decorator,unused-ignore]
    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)
        quoted = self.identifier_preparer.quote_identifier
        path = ".".join(quoted(part) for part in (schema, table_name) if part)
        fields = connection.connection.session.table(path).schema()
        return [
            {
                "name": field.name,
                "type": type_of(field.type),
                "nullable": field.nullable,
                "default": None,
                "comment": (field.metadata or {}).get(b"comment", b"").decode() or None,
            }
            for field in fields
        ]

    def get_pk_constraint(self, *args: Any, **kw: Any) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, *args: Any, **kw: Any) -> list[Any]:
        return []

    def get_indexes(self, *args: Any, **kw: Any) -> list[Any]:
        return []

    def get_unique_constraints(self, *args: Any, **kw: Any) -> list[Any]:
        return []

    def get_check_constraints(self, *args: Any, **kw: Any) -> list[Any]:
        return []

    def get_table_comment(self, *args: Any, **kw: Any) -> Any:
        return {"text": None}


def arguments_of(query: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``dbapi.connect`` for the parameters of a URL: ``model``, ``cache``,
    ``budget``, ``table.NAME=FILE``, ``attach.NAME=URL``; any other is an option of the session."""
    found: dict[str, Any] = {"tables": {}, "attach": {}, "settings": {}}
    for key, value in query.items():
        kind, dot, name = key.partition(".")
        if dot and kind in ("table", "attach"):
            found["tables" if kind == "table" else "attach"][name] = value
        elif key in _OF_CONNECT:
            found[key] = _plain(value)
        elif key == "budget":
            found[key] = Budget.parsed(value)
        else:
            found["settings"][key] = value
    return found


def _as_number(part: Any) -> Any:
    """A limit as a number, whatever its parameter has been declared as."""
    is_untyped = isinstance(part, elements.BindParameter) and isinstance(part.type, types.NullType)
    return part._with_binary_element_type(types.Integer()) if is_untyped else part


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return None if value in ("none", "off") else value


def type_of(kind: pa.DataType) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for one of Arrow."""
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_decimal(kind):
        return types.NUMERIC(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return types.TIMESTAMP(timezone=kind.tz is not None)
    known: list[tuple[Any, types.TypeEngine[Any]]] = [
        (pa.types.is_boolean, types.BOOLEAN()),
        (pa.types.is_int64, types.BIGINT()),
        (pa.types.is_integer, types.INTEGER()),
        (pa.types.is_floating, types.FLOAT()),
        (pa.types.is_date, types.DATE()),
        (pa.types.is_time, types.TIME()),
        (pa.types.is_duration, types.Interval()),
        (is_text, types.VARCHAR()),
        (is_bytes, types.LargeBinary()),
    ]
    return next((made for test, made in known if test(kind)), types.NullType())
