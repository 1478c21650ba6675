"""Translates BlendSQL: ``{{LLMMap('question', t.column)}}`` and similar calls, current and
earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot.tokenizer_core import TokenType

from blendfusion.dialects.blendsql.arguments import Arguments
from blendfusion.dialects.blendsql.select_aliases import aliases_in_where
from blendfusion.dialects.blendsql.signatures import GONE, signature
from blendfusion.dialects.blendsql.sqlite_functions import in_our_words
from blendfusion.dialects.shared.braces import Braces, Given, is_call, read_call, read_named
from blendfusion.dialects.shared.catalog import Known
from blendfusion.dialects.shared.columns import Base, Columns, is_text, plain_name
from blendfusion.dialects.shared.positional import as_query, filled
from blendfusion.dialects.shared.question_columns import Inside, Table, unique
from blendfusion.errors import QueryError, close_matches
from blendfusion.sql.query_tree import Reader
from blendfusion.sql.rewriter import Form, Weaver, Written, joined
from blendfusion.sql.source_map import Piece, Translation, unchanged, within
from blendfusion.udfs.declare.arguments import INFERRED, quoted, quoted_name
from blendfusion.udfs.declare.returns import returned

_ORDERS = (TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE)
_CAPTION = "Describe the image in one sentence."
_NO_CONTEXT = "(no text is given: answer from general knowledge)"


def translated(text: str, known: Known) -> Translation:
    """``text`` in our SQL; text without a form of BlendSQL's stays as it is, byte for byte.

    Raises QueryError, with the span in ``text``, for a form that has no translation.
    """
    steps: list[Callable[[str], Translation]] = [
        as_query,
        in_our_words,
        lambda step: aliases_in_where(step, known),
    ]
    if known.parameters is not None:
        values = known.parameters
        steps.insert(0, lambda step: filled(step, values))
    done = unchanged(text)
    steps.append(lambda step: _BlendSQL(step, known, done).whole())
    for step in steps:
        try:
            done = done.then(step(done.sql))
        except QueryError as problem:
            raise within(problem, done) from None
    return done


class _BlendSQL:
    """One text, whose calls in braces are written as calls of ours."""

    def __init__(self, text: str, known: Known, before: Translation) -> None:
        self.reader = Reader(text)
        if known.parameters is not None:
            self.reader.data = frozenset(_values(self.reader, before))
        self.known = known
        self.weaver = Weaver(self.reader)
        self.columns = Columns(self.weaver, known)
        self._aliases: set[tuple[int, str]] = set()
        at = 0
        while at < len(self.reader.tokens):
            if is_call(self.reader, at):
                self._claim(read_call(self.reader, at))
                at += 2
            at += 1

    def whole(self) -> Translation:
        return self.weaver.whole()

    # --- calls ------------------------------------------------------------------------------------

    def _claim(self, call: Braces) -> None:
        """Have the call written, and those that stand in it without braces."""
        write = self._writer(call)
        start, stop = call.start, call.stop
        before = self.reader.word(start - 1)
        bare = False
        if before == "VALUES":
            start -= 1
            bare = self.reader.word(start - 1) == "FROM"
        if before in ("JOIN", "FROM") and call.name.lower() != "llmjoin":
            raise self.reader.refused(
                call.at, f"{call.name} gives a value, not a table", "Call it in SELECT or WHERE."
            )
        alias = self._alias(call)
        around = ("(", ")") if bare else ("", "")
        self.weaver.add(Form(start, stop, lambda: [around[0], *write(), around[1], alias]))
        for given in call.given:
            inner = read_named(self.reader, given.start)
            if inner is not None and inner.stop == given.stop and self._is_known(inner.name):
                self._claim(inner)

    def _is_known(self, name: str) -> bool:
        return signature(name) is not None or name.lower() in GONE

    def _alias(self, call: Braces) -> str:
        """A column name, if the call is a whole item of a select list without one; else ''."""
        if call.start == call.at or not self.reader.is_item(call.start, call.stop):
            return ""
        first = call.given[0] if call.given else Given(None, call.at, call.at)
        text = " ".join(self.reader.written(call.at, call.stop - 2).split())
        question = first.name in (None, "question") and first.stop == first.start + 1
        if call.name.lower() == "llmmap" and question and self._is_string(first.start):
            text = self.reader.tokens[first.start].text
        if any(self.reader.is_query(g.start, g.stop) for g in call.given):
            first = call.given[0]
            text = f"{call.name}({self.reader.written(first.start, first.stop)})"
        select = self.reader.around(call.start)[0][0]
        if (select.start, text) in self._aliases:
            return ""
        self._aliases.add((select.start, text))
        return f" AS {quoted_name(text)}"

    def _is_string(self, at: int) -> bool:
        return self.reader.kind(at) == TokenType.STRING and at not in self.reader.data

    def _writer(self, call: Braces) -> Callable[[], Written]:
        name = call.name.lower()
        if name in GONE:
            problem, hint = GONE[name]
            raise self.reader.refused(call.at, problem, hint)
        takes = signature(name)
        if takes is not None:
            arguments = Arguments(self.weaver, call, takes)
            if name in ("vqa", "imagecaption"):
                return lambda: self._seen(arguments)
            if name == "llmmap":
                return lambda: self._map(arguments)
            if name == "llmjoin":
                return self._join(arguments)
            return lambda: self._context_call(arguments, name)
        if name in self.known.ingredients:
            return lambda: self._custom(call, name)
        names = ["LLMMap", "LLMQA", "LLMJoin", "LLMValidate", *self.known.ingredients]
        raise self.reader.refused(
            call.at, f"unknown function '{call.name}'", close_matches(call.name, names)
        )

    def _custom(self, call: Braces, name: str) -> Written:
        parts: list[Iterable[Piece | str]] = []
        for given in call.given:
            written = self.value(given)
            parts.append([f"{given.name} => ", *written] if given.name else written)
        return [f"{name}(", *joined(parts), ")"]

    # --- LLMMap -----------------------------------------------------------------------------------

    def _map(self, given: Arguments) -> Written:
        values, context = self._values_and_context(given)
        if context is None and given.schema is None and all(map(self.columns.is_images, values)):
            return self._seen(given)
        if given.schema is not None:
            if len(values) != 1 or context is not None:
                raise self.reader.refused(
                    given.call.at,
                    f"{given.call.name}: the fields of a schema are read from one value",
                    "Join the values into one: a || ' ' || b.",
                )
            return self._extracted(given, given.schema, self.value(values[0]))
        parts: list[Iterable[Piece | str]] = [given.text("question")]
        parts += [self.value(value) for value in values]
        if context is not None:
            is_query = self.reader.is_query(context.start, context.stop)
            context_text = self._as_text(self._table(context)) if is_query else self.value(context)
            parts.append(context_text)
        parts += self._options(given)
        return ["llm_map(", *joined(parts), ")"]

    def _values_and_context(self, given: Arguments) -> tuple[list[Given], Given | None]:
        """The values of a call by row, and the context that they share, if any."""
        values, context = given.values, given.one("context")
        if not values and context is not None:  # the value's name in old versions
            values, context = [context], None
        if not values:
            raise self.reader.refused(
                given.call.at,
                f"{given.call.name}: no column to ask about",
                given.signature.spelling,
            )
        return values, context

    def _seen(self, given: Arguments) -> Written:
        """A question about images, or their captions."""
        values, context = self._values_and_context(given)
        if context is not None:
            raise self.reader.refused(
                context.start, f"{given.call.name} takes images only", given.signature.spelling
            )
        if given.schema is not None:
            raise self.reader.refused(
                given.schema.start,
                f"{given.call.name}: an answer about images is one value or one list",
                "Ask for each field by itself.",
            )
        captions = "question" not in given.signature.positional
        parts: list[Iterable[Piece | str]] = [
            [quoted(_CAPTION)] if captions else given.text("question")
        ]
        parts += [self.value(value) for value in values]
        return ["llm_vqa(", *joined([*parts, *self._options(given)]), ")"]

    def _as_text(self, table: Table) -> Written:
        """The rows of a context as one text, in an order of their own where it has none."""
        fields = [
            c if len(table.columns) == 1 else f"{quoted(f'{label}: ')} || {c}"
            for c, label in zip(table.columns, table.labels, strict=True)
        ]
        row = fields[0] if len(fields) == 1 else f"concat_ws(', ', {', '.join(fields)})"
        row = f"CAST({row} AS VARCHAR)"
        order = table.order or row
        return [f"(SELECT string_agg({row}, '; ' ORDER BY {order}) FROM ", *table.source, ")"]

    def _extracted(self, given: Arguments, schema: Given, value: Written) -> Written:
        """The fields of a JSON schema, read from one value."""
        parts: list[Iterable[Piece | str]] = [value]
        parts.append(self.weaver.woven(schema.start, schema.stop))
        parts.append(["question => ", *given.text("question")])
        for name in ("on_error", "examples"):
            other = given.one(name)
            if other is not None:
                parts.append([f"{name} => ", *self.weaver.woven(other.start, other.stop)])
        return ["llm_extract(", *joined(parts), ")"]

    # --- LLMQA, LLMValidate -----------------------------------------------------------------------

    def _context_call(self, given: Arguments, name: str) -> Written:
        call = given.call
        function = "llm_qa" if name == "llmqa" else "llm_validate"
        question = given.text(
            "question" if given.one("question") else given.signature.positional[0]
        )
        options = self._options(given)
        contexts = given.contexts
        template = "".join(p if isinstance(p, str) else p.text for p in question).count("{}")
        place = self._list_place(call)
        if given.schema is not None:
            if template or place or function == "llm_validate":
                raise self.reader.refused(
                    given.schema.start,
                    f"{call.name}: no JSON schema is possible here",
                    "Write llm_extract(text, 'name TEXT, year INT', question => 'question').",
                )
            column = self._in_place(call, contexts)
            value = (
                self._as_text(self._context_table(contexts))
                if column is None
                else ["string_agg(CAST(", *column, " AS VARCHAR), '; ')"]
            )
            return self._extracted(given, given.schema, value)
        if template:
            if function == "llm_validate" or len(contexts) != template:
                raise self.reader.refused(
                    call.at,
                    f"{call.name}: {template} placeholders {{}} for {len(contexts)} context(s)",
                    "With {} in the question each context gives its first value, and no more.",
                )
            return self._placed(place, given, *self._first_values(question, contexts, options))
        in_place = self._in_place(call, contexts) if place is None else None
        if in_place is not None:
            return [f"{function}(", *joined([question, in_place, *options]), ")"]
        table = self._context_table(contexts)
        arguments = joined([question, *([c] for c in table.columns), *options])
        order = [" ORDER BY ", table.order] if table.order else []
        return self._placed(place, given, [f"{function}(", *arguments, *order, ")"], table.source)

    def _placed(
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
            count = returned(self._returned(given) or "list")
            items = count.max_items if count is not None else None
            columns = "unnest(answers) AS column1"  # how many columns is not said
            if items is not None and count is not None and count.min_items == items:
                columns = ", ".join(f"answers[{i}] AS column{i}" for i in range(1, items + 1))
            return [f"SELECT {columns} FROM (SELECT ", *head, " AS answers FROM ", *source, ")"]
        return ["(SELECT ", *head, " FROM ", *source, ")"]

    def _list_place(self, call: Braces) -> str | None:
        """``IN`` or ``VALUES``, if the call stands right behind it, ``UNNEST`` inside it."""
        before = self.reader.word(call.start - 1)
        if before in ("IN", "VALUES"):
            return before
        if self.reader.opens(call.start - 1) and self.reader.word(call.start - 2) == "UNNEST":
            return "UNNEST"
        return None

    def _in_place(self, call: Braces, contexts: Sequence[Given]) -> Written | None:
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
        return None if at_where or in_from else self.value(contexts[0])

    def _first_values(
        self, question: Written, contexts: Sequence[Given], options: list[Written]
    ) -> tuple[Written, Written]:
        """A question with placeholders, and the first values of the contexts that it is about."""
        tables = [self._table(context) for context in contexts]
        if len(tables) == 1:
            arguments = joined([question, [tables[0].columns[0]], *options])
            return ["llm_map(", *arguments, ")"], [*tables[0].source, tables[0].first]
        names = [f"value{i}" for i in range(1, len(tables) + 1)]
        firsts: list[Iterable[Piece | str]] = [
            [f"(SELECT {t.columns[0]} FROM ", *t.source, f"{t.first}) AS {name}"]
            for t, name in zip(tables, names, strict=True)
        ]
        arguments = joined([question, *([n] for n in names), *options])
        return ["llm_map(", *arguments, ")"], ["(SELECT ", *joined(firsts), ") AS context"]

    # --- contexts ---------------------------------------------------------------------------------

    def _context_table(self, contexts: Sequence[Given]) -> Table:
        if not contexts:
            return Table([f"(VALUES ({quoted(_NO_CONTEXT)})) AS none(context)"], ["context"])
        tables = [self._table(context) for context in contexts]
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
        union = joined(branches, " UNION ALL ")
        return Table(["(", *union, ") AS contexts"], [quoted_name(n) for n in labels], labels)

    def _table(self, context: Given) -> Table:
        """A context as a relation with columns that have names."""
        reader = self.reader
        if reader.is_query(context.start, context.stop):
            return self._query(context)
        kind = reader.kind(context.start)
        one = context.stop == context.start + 1
        if one and kind == TokenType.STRING and reader.pair(context.start) is None:
            literal = reader.written(context.start, context.stop)
            return Table([f"(VALUES ({literal})) AS given(context)"], ["context"], ["context"])
        if self.columns.is_column(context):
            base = self._base(context)
            return Table([base.relation], [base.column], [base.name])
        inner = self.value(context)
        return Table(["(SELECT ", *inner, " AS context)"], ["context"], ["context"])

    def _query(self, context: Given) -> Table:
        inside = Inside(self.reader, context)
        names = inside.outputs()
        terms, added = inside.order()
        if added:
            self.weaver.behind[inside.items_end] = added
        source = self.weaver.woven(context.start, context.stop)
        order = ", ".join(terms)
        if names is None:
            schema = self.columns.schema(inside.text, context.start)
            if schema is None:
                raise self.reader.refused(
                    context.start,
                    "the columns of this context are not known",
                    "Name them in its SELECT in the place of *.",
                )
            listed = [str(name) for name in schema.names]
            return Table([*source, " AS context"], list(map(quoted_name, listed)), listed, order)
        labels = unique([name for name, _ in names])
        if all(written for _, written in names) and labels == [name for name, _ in names]:
            return Table([*source, " AS context"], [w for _, w in names], labels, order)
        columns = list(map(quoted_name, labels))
        hidden = [term.split()[0] for term in terms]
        alias = f" AS context({', '.join([*columns, *hidden])})"
        return Table([*source, alias], columns, labels, order)

    # --- columns and options ----------------------------------------------------------------------

    def value(self, given: Given) -> Written:
        """An argument as a value: ``'table::column'`` is a column."""
        reader = self.reader
        pair = reader.pair(given.start) if given.stop == given.start + 1 else None
        if pair is not None:
            table, column = pair
            actual = self.columns.actual(table, column, given.start)
            return [f"{plain_name(table)}.{plain_name(actual)}"]
        return list(self.weaver.woven(given.start, given.stop))

    def _options(self, given: Arguments) -> list[Written]:
        """The named arguments of ours that those of a call become."""
        written: list[Written] = []
        options = given.one("options")
        returns = given.returns
        explicit = options is not None or returns is not None or given.one("regex") is not None
        inferred = None if explicit else self._inferred(given.call)
        if options is not None and self.reader.word(options.start) not in ("NONE", "NULL"):
            written.append(["options => ", *self._set(options)])
        elif inferred is not None:
            written.append([f"options => {inferred}"])
        returns = self._returned(given)
        if returns is None and not explicit and inferred is None and self._is_number(given.call):
            returns = "int"
        if returns is not None:
            written.append([f"returns => {quoted(returns)}"])
        for name in ("regex", "confidence", "on_error", "examples"):
            other = given.one(name)
            if other is not None:
                written.append([f"{name} => ", *self.weaver.woven(other.start, other.stop)])
        return written

    def _is_number(self, call: Braces) -> bool:
        """Where BlendSQL takes an answer for a whole number: in MAX, MIN and ORDER BY, and compared
        with another answer or a subquery."""
        reader, start, stop = self.reader, call.start, call.stop
        if reader.kind(start - 1) == TokenType.ORDER_BY:
            return True
        if reader.opens(start - 1) and reader.close[start - 1] == stop:
            if reader.word(start - 2) in ("MAX", "MIN"):
                return True
        elif reader.word(start - 1) == "DISTINCT" and reader.word(start - 3) in ("MAX", "MIN"):
            return True
        if reader.kind(stop) in _ORDERS:
            return is_call(reader, stop + 1) or reader.word(stop + 2) == "SELECT"
        if reader.kind(start - 1) in _ORDERS:
            return start > 1 and reader.kind(start - 2) == TokenType.R_BRACE
        # The only item of a subquery that an answer is compared with.
        alone = reader.word(start - 1) == "SELECT" and reader.opens(start - 2)
        return alone and reader.kind(start - 3) in _ORDERS

    def _returned(self, given: Arguments) -> str | None:
        """What ``returns`` says: a list where several answers are needed."""
        returns = given.returns
        if self._list_place(given.call) is not None and not given.is_list:
            return "list+" if returns is None else f"list[{returns}]+"
        if returns is None and given.quantifier is not None:
            return f"list{given.quantifier}"
        return returns

    def _set(self, given: Given) -> Written:
        """A closed set: literals, ``'a;b'``, a column, a subquery, or the answers of a call."""
        reader = self.reader
        if reader.is_query(given.start, given.stop) or reader.kind(given.start) in (
            TokenType.L_BRACKET,
            TokenType.PARAMETER,
        ):
            return list(self.weaver.woven(given.start, given.stop))
        if given.stop == given.start + 1 and reader.kind(given.start) == TokenType.STRING:
            text = reader.tokens[given.start].text
            if reader.pair(given.start) is None:
                options = [part.strip() for part in text.split(";")]
                return [f"[{', '.join(quoted(o) for o in options if o)}]"]
        inner = self._inner(given)
        if inner is not None:
            written = self.weaver.woven(given.start, given.stop)
            takes = signature(inner.name)
            if takes is not None and Arguments(self.weaver, inner, takes).is_list:
                return ["(SELECT unnest(answers) FROM (SELECT ", *written, " AS answers))"]
            return ["(SELECT ", *written, ")"]
        if self.columns.is_column(given):
            base = self._base(given)
            return [f"(SELECT {base.column} FROM {base.relation})"]
        return list(self.weaver.woven(given.start, given.stop))

    def _inner(self, given: Given) -> Braces | None:
        """The call that an argument is, with braces of its own or without."""
        if is_call(self.reader, given.start):
            return read_call(self.reader, given.start)
        return read_named(self.reader, given.start)

    def _base(self, given: Given) -> Base:
        """What a column is by itself. Raises QueryError where that is not known."""
        found = self.columns.base(given)
        if found is None:
            column = self.reader.written(given.start, given.stop)
            raise self.reader.refused(
                given.start, f"'{column}': of which table?", f"Write table.{column}."
            )
        return found

    def _inferred(self, call: Braces) -> str | None:
        """The values of the column of texts that a call is compared with: ``t.c = {{…}}``."""
        reader = self.reader
        equal = reader.kind(call.start - 1) == TokenType.EQ
        among = reader.word(call.start - 1) == "IN"
        if not (equal or among):
            return None
        stop = call.start - 1 - (among and reader.word(call.start - 2) == "NOT")
        start = reader.operand_before(stop)
        if start < 0 or reader.column_end(start) != stop:
            return None
        found = self.columns.base(Given(None, start, stop))
        if found is None:  # of several tables: DataFusion says so
            return None
        query = f"SELECT {found.column} FROM {found.relation}"
        schema = self.columns.schema(query, start)
        texts = schema is not None and len(schema.types) == 1 and is_text(schema.types[0])
        return f"({query} {INFERRED})" if texts else None

    # --- LLMJoin ----------------------------------------------------------------------------------

    def _join(self, given: Arguments) -> Callable[[], Written]:
        reader, call = self.reader, given.call
        left, right = given.one("left_on"), given.one("right_on")
        if left is None or right is None:
            raise reader.refused(
                call.at, f"{call.name} takes left_on and right_on", given.signature.spelling
            )
        if "llm_join" not in self.known.ingredients:
            a, b = ("".join(map(_text_of, self.value(side))) for side in (left, right))
            raise reader.refused(
                call.at,
                f"{call.name}: joins by meaning are not there yet",
                f"Write ON llm_filter('Are these the same?', {a}, {b}): every pair is asked about.",
            )

        def write() -> Written:
            parts: list[Iterable[Piece | str]] = [self.value(left), self.value(right)]
            how = given.one("join_criteria")
            if how is not None:
                parts.append(["how => ", *given.text("join_criteria")])
            for name in ("many", "exact", "k", "on_error"):
                other = given.one(name)
                if other is not None:
                    parts.append([f"{name} => ", *self.weaver.woven(other.start, other.stop)])
            condition: Written = ["llm_join(", *joined(parts), ")"]
            if reader.word(call.start - 1) != "JOIN":
                return condition
            return [f"{self._joined_table(call, left, right)} ON ", *condition]

        return write

    def _joined_table(self, call: Braces, left: Given, right: Given) -> str:
        """The table of the two that is not in FROM yet."""
        reader = self.reader
        before = set()
        for select, _ in reader.around(call.start)[:1]:
            for source in reader.sources(select):
                if source.start < call.start:
                    alias = source.alias if source.alias is not None else source.end - 1
                    before.add(reader.name(alias))
        tables = []
        for side in (left, right):
            pair = reader.pair(side.start) if side.stop == side.start + 1 else None
            tables.append(reader.name(side.start) if pair is None else pair[0])
        new = [t for t in tables if t not in before]
        if len(new) != 1:
            raise reader.refused(
                call.at,
                f"{call.name}: which table is joined?",
                "Write JOIN table ON {{LLMJoin(…)}}.",
            )
        return plain_name(new[0])


def _text_of(part: Piece | str) -> str:
    return part if isinstance(part, str) else part.text


def _values(reader: Reader, before: Translation) -> Iterable[int]:
    """Where the values of ``?`` stand, in the text that ``before`` made."""
    for at, token in enumerate(reader.tokens):
        start, end = before.origin(token.start, token.end + 1)
        if before.source[start:end] == "?":
            yield at
