"""Writes the calls that read a context: LLMQA and LLMValidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.rewriter import Written, join_parts
from blendfusion.language.query_text.source_map import Piece
from blendfusion.language.query_text.substitute_calls import NO_TEXT
from blendfusion.services.dialects.blendsql.arguments import Arguments
from blendfusion.services.dialects.blendsql.options import Options
from blendfusion.services.dialects.common.braces import Argument, Braces
from blendfusion.services.dialects.common.columns import Columns
from blendfusion.services.dialects.common.question_columns import Inside, Table, unique
from blendfusion.udfs.declare.arguments import quoted_name, sql_string
from blendfusion.udfs.declare.returns import constraint_named


class Contexts:
    """The calls of one text that read a context, and the contexts of the others."""

    def __init__(self, columns: Columns, options: Options) -> None:
        self.columns = columns
        self.weaver = columns.weaver
        self.reader = columns.reader
        self.options = options

    def call(self, given: Arguments, name: str) -> Written:
        call = given.call
        function = "llm_qa" if name == "llmqa" else "llm_validate"
        question = given.text(
            "question" if given.one("question") else given.signature.positional[0]
        )
        options = self.options.write(given)
        contexts = given.contexts
        template = "".join(p if isinstance(p, str) else p.text for p in question).count("{}")
        place = self.options.list_place(call)
        if given.schema is not None:
            if template or place or function == "llm_validate":
                raise self.reader.refusal(
                    given.schema.start,
                    f"{call.name}: no JSON schema is possible here",
                    "Write llm_extract(text, 'name TEXT, year INT', question => 'question').",
                )
            column = self._in_place(call, contexts)
            value = (
                self.as_text(self._context_table(contexts))
                if column is None
                else ["string_agg(CAST(", *column, " AS VARCHAR), '; ')"]
            )
            return self.extract(given, given.schema, value)
        if template:
            if function == "llm_validate" or len(contexts) != template:
                raise self.reader.refusal(
                    call.at,
                    f"{call.name}: {template} placeholders {{}} for {len(contexts)} context(s)",
                    "With {} in the question each context gives its first value, and no more.",
                )
            return self._place(place, given, *self._first_values(question, contexts, options))
        in_place = self._in_place(call, contexts) if place is None else None
        if in_place is not None:
            return [f"{function}(", *join_parts([question, in_place, *options]), ")"]
        table = self._context_table(contexts)
        arguments = join_parts([question, *([c] for c in table.columns), *options])
        order = [" ORDER BY ", table.order] if table.order else []
        return self._place(place, given, [f"{function}(", *arguments, *order, ")"], table.source)

    def _place(
        self, place: str | None, given: Arguments, head: Written, source: Written
    ) -> Written:
        """The aggregate over its context: a scalar, the values of IN, or the columns of VALUES."""
        if place == "IN":
            return [
                "(SELECT unnest(answers) FROM (SELECT ",
                *head,
                " AS answers FROM ",
                *source,
                "))",
            ]
        if place == "VALUES":
            count = constraint_named(self.options.return_type(given) or "list")
            items = count.max_items if count is not None else None
            columns = "unnest(answers) AS column1"  # the number of columns is unknown
            if items is not None and count is not None and count.min_items == items:
                columns = ", ".join(f"answers[{i}] AS column{i}" for i in range(1, items + 1))
            return [f"SELECT {columns} FROM (SELECT ", *head, " AS answers FROM ", *source, ")"]
        return ["(SELECT ", *head, " FROM ", *source, ")"]

    def _in_place(self, call: Braces, contexts: Sequence[Argument]) -> Written | None:
        """The column that is the only context of a call in a select list, HAVING or ORDER BY: the
        groups of the query around it are asked about."""
        if len(contexts) != 1 or not self.columns.is_column(contexts[0]):
            return None
        around = self.reader.around(call.start)
        if not around or not around[0][0].sources:
            return None
        select = around[0][0]
        at_where = select.where is not None and select.where[0] <= call.start < select.where[1]
        in_from = any(s.start <= call.start < (s.on or (0, s.stop))[1] for s in select.sources)
        return None if at_where or in_from else self.columns.value(contexts[0])

    def _first_values(
        self, question: Written, contexts: Sequence[Argument], options: list[Written]
    ) -> tuple[Written, Written]:
        """A question with placeholders, and the first values of the contexts that it is about."""
        tables = [self.table(context) for context in contexts]
        if len(tables) == 1:
            arguments = join_parts([question, [tables[0].columns[0]], *options])
            return ["llm_map(", *arguments, ")"], [*tables[0].source, tables[0].first]
        names = [f"value{i}" for i in range(1, len(tables) + 1)]
        firsts: list[Iterable[Piece | str]] = [
            [f"(SELECT {t.columns[0]} FROM ", *t.source, f"{t.first}) AS {name}"]
            for t, name in zip(tables, names, strict=True)
        ]
        arguments = join_parts([question, *([n] for n in names), *options])
        return ["llm_map(", *arguments, ")"], ["(SELECT ", *join_parts(firsts), ") AS context"]

    # --- contexts ---------------------------------------------------------------------------------

    def _context_table(self, contexts: Sequence[Argument]) -> Table:
        if not contexts:
            return Table([f"(VALUES ({sql_string(NO_TEXT)})) AS none(context)"], ["context"])
        tables = [self.table(context) for context in contexts]
        if len(tables) == 1:
            return tables[0]
        labels = list(dict.fromkeys(label for t in tables for label in t.labels))
        branches: list[Iterable[Piece | str]] = []
        for table in tables:
            own = dict(zip(table.labels, table.columns, strict=True))
            items = (
                f"CAST({own[label]} AS VARCHAR) AS {quoted_name(label)}"
                if label in own
                else f"NULL AS {quoted_name(label)}"
                for label in labels
            )
            branches.append([f"SELECT {', '.join(items)} FROM ", *table.source])
        union = join_parts(branches, " UNION ALL ")
        return Table(["(", *union, ") AS contexts"], [quoted_name(n) for n in labels], labels)

    def table(self, context: Argument) -> Table:
        """A context as a relation with columns that have names."""
        reader = self.reader
        if reader.is_query(context.start, context.stop):
            return self._query(context)
        kind = reader.kind(context.start)
        one = context.stop == context.start + 1
        if one and kind == TokenType.STRING and reader.pair(context.start) is None:
            literal = reader.source_text(context.start, context.stop)
            return Table([f"(VALUES ({literal})) AS given(context)"], ["context"], ["context"])
        if self.columns.is_column(context):
            base = self.options.base(context)
            return Table([base.relation], [base.column], [base.name])
        inner = self.columns.value(context)
        return Table(["(SELECT ", *inner, " AS context)"], ["context"], ["context"])

    def _query(self, context: Argument) -> Table:
        inside = Inside(self.reader, context)
        names = inside.outputs()
        terms, added = inside.order()
        if added:
            self.weaver.behind[inside.items_end] = added
        source = self.weaver.weave(context.start, context.stop)
        order = ", ".join(terms)
        if names is None:
            schema = self.columns.schema(inside.text, context.start)
            if schema is None:
                raise self.columns.unknown_schema(inside.text, context.start)
            listed = [str(name) for name in schema.names]
            return Table([*source, " AS context"], list(map(quoted_name, listed)), listed, order)
        labels = unique([name for name, _ in names])
        if all(written for _, written in names) and labels == [name for name, _ in names]:
            return Table([*source, " AS context"], [w for _, w in names], labels, order)
        columns = list(map(quoted_name, labels))
        hidden = [term.split()[0] for term in terms]
        alias = f" AS context({', '.join([*columns, *hidden])})"
        return Table([*source, alias], columns, labels, order)

    def as_text(self, table: Table) -> Written:
        """The rows of a context as one text, in an order of their own where it has none."""
        fields = [
            c if len(table.columns) == 1 else f"{sql_string(f'{label}: ')} || {c}"
            for c, label in zip(table.columns, table.labels, strict=True)
        ]
        row = fields[0] if len(fields) == 1 else f"concat_ws(', ', {', '.join(fields)})"
        row = f"CAST({row} AS VARCHAR)"
        order = table.order or row
        return [f"(SELECT string_agg({row}, '; ' ORDER BY {order}) FROM ", *table.source, ")"]

    def extract(self, given: Arguments, schema: Argument, value: Written) -> Written:
        """The fields of a JSON schema, read from one value."""
        parts: list[Iterable[Piece | str]] = [value]
        parts.append(self.weaver.weave(schema.start, schema.stop))
        parts.append(["question => ", *given.text("question")])
        parts += given.passed_on("on_error", "examples")
        return ["llm_extract(", *join_parts(parts), ")"]
