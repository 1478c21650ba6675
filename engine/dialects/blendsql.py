"""BlendSQL: ``{{LLMMap('question', t.column)}}`` and its kin, of today's and earlier versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.clauses import Query, Select, Source
from blendfusion.dialects.braces import Braces, Given, is_call, read_call, read_named
from blendfusion.dialects.known import Known
from blendfusion.dialects.positional import as_query, filled
from blendfusion.dialects.reader import Reader
from blendfusion.dialects.sqlite import in_our_words
from blendfusion.dialects.translation import Piece, Translation, unchanged, within
from blendfusion.dialects.weaver import Form, Weaver, joined
from blendfusion.errors import QueryError, close_matches
from blendfusion.lateral import quoted_name
from blendfusion.scopes import visible_tables
from blendfusion.udfs.call import quoted
from blendfusion.udfs.ingredient import returned

Written = list[Piece | str]


def translated(text: str, known: Known) -> Translation:
    """``text`` in our SQL; text without a form of BlendSQL's stays as it is, byte for byte.

    Raises QueryError, with the span in ``text``, for a form that has no translation.
    """
    steps: list[Callable[[str], Translation]] = [as_query, in_our_words]
    if known.parameters is not None:
        values = known.parameters
        steps.insert(0, lambda step: filled(step, values))
    steps.append(lambda step: _BlendSQL(step, known).whole())
    done = unchanged(text)
    for step in steps:
        try:
            done = done.then(step(done.sql))
        except QueryError as problem:
            raise within(problem, done) from None
    return done


@dataclass(frozen=True, slots=True)
class _Signature:
    """The positional arguments and the names of a function of BlendSQL's."""

    positional: tuple[str, ...]
    named: frozenset[str]
    spelling: str


_COMMON = frozenset({"options", "return_type", "regex", "quantifier", "on_error", "examples"})
_SIGNATURES: Mapping[str, _Signature] = {
    "llmmap": _Signature(
        ("question", "values"),
        _COMMON | {"context"},
        "Write LLMMap('question', column), in our SQL llm_map('question', column).",
    ),
    "llmqa": _Signature(
        ("question",),
        _COMMON | {"context"},
        "Write LLMQA('question', (SELECT …)), in our SQL (SELECT llm_qa('question', column) FROM …).",
    ),
    "llmvalidate": _Signature(
        ("claim",),
        frozenset({"context", "question", "on_error", "examples"}),
        "Write LLMValidate('claim', (SELECT …)), in our SQL (SELECT llm_validate('claim', column) FROM …).",
    ),
    "llmjoin": _Signature(
        ("left_on", "right_on", "join_criteria"),
        frozenset({"many", "exact", "k", "on_error"}),
        "Write JOIN t ON {{LLMJoin(a.x, t.y)}}, in our SQL JOIN t ON llm_join(a.x, t.y).",
    ),
}
_OURS = {"llm_map": "llmmap", "llm_qa": "llmqa", "llm_validate": "llmvalidate"}

_GONE: Mapping[str, tuple[str, str]] = {
    "ragqa": (
        "RAGQA searches the web, which BlendFusion does not",
        "Register documents, and ask about those that a search finds: (SELECT llm_qa('question', "
        "content) FROM llm_search('documents', 'words', k => 5)).",
    ),
    "bingwebsearch": (
        "BingWebSearch searches the web, which BlendFusion does not",
        "Register documents, and search them: FROM llm_search('documents', 'words', k => 5).",
    ),
    "llmsearchmap": (
        "LLMSearchMap is no function of BlendSQL's",
        "Join the rows with what a search finds for each: llm_search('documents', t.name, k => 5).",
    ),
    "websearch": (
        "WebSearch searches the web, which BlendFusion does not",
        "Register documents, and search them: FROM llm_search('documents', 'words', k => 5).",
    ),
    "imagecaption": (
        "ImageCaption reads images, which models here do not",
        "Register the captions as a column of text, and ask about that.",
    ),
    "vqa": (
        "VQA reads images, which models here do not",
        "Register what the images show as a column of text, and ask about that.",
    ),
    "dt": (
        "DT made predicates on dates, until 2024",
        "Write the predicate: EXTRACT(QUARTER FROM t.date) = 2.",
    ),
}

_NO_ARGUMENT: Mapping[str, str] = {
    "example_outputs": "Write examples => [['a value', 'its answer']], one pair a worked example.",
    "max_tokens": "How long an answer may be follows from its type; give a regex for a shorter one.",
    "value_limit": "Take the rows that you want in a subquery with LIMIT.",
    "long_answer": "Leave it out: an answer is as long as the model makes it.",
    "use_option_aliases": "Leave it out: a model is held to the options themselves.",
    "model": "A session has one model: bf.connect('…').",
}

_TYPES = {"substring": "text"}
_FEW = "Give one of the types str, int, float, bool, date, list[str], list[int], …"
_NO_CONTEXT = "(no text is given: answer from general knowledge)"


class _BlendSQL:
    """One text, whose calls in braces are written as calls of ours."""

    def __init__(self, text: str, known: Known) -> None:
        self.reader = Reader(text)
        self.known = known
        self.weaver = Weaver(self.reader)
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
        if before == "VALUES":
            start -= 1
        if before in ("JOIN", "FROM") and call.name.lower() != "llmjoin":
            raise self.reader.refused(
                call.at, f"{call.name} gives a value, not a table", "Call it in SELECT or WHERE."
            )
        alias = self._alias(call)
        self.weaver.add(Form(start, stop, lambda: [*write(), alias]))
        for given in call.given:
            inner = read_named(self.reader, given.start)
            if inner is not None and inner.stop == given.stop and self._is_known(inner.name):
                self._claim(inner)

    def _is_known(self, name: str) -> bool:
        lowered = name.lower()
        return lowered in _SIGNATURES or lowered in _GONE

    def _alias(self, call: Braces) -> str:
        """A column name, if the call is a whole item of a select list without one; else ''."""
        if call.start == call.at or not self.reader.is_item(call.start, call.stop):
            return ""
        text = " ".join(self.reader.written(call.at, call.stop - 2).split())
        if any(self.reader.is_query(g.start, g.stop) for g in call.given):
            first = call.given[0]
            text = f"{call.name}({self.reader.written(first.start, first.stop)})"
        select = self.reader.around(call.start)[0][0]
        if (select.start, text) in self._aliases:
            return ""
        self._aliases.add((select.start, text))
        return f" AS {quoted_name(text)}"

    def _writer(self, call: Braces) -> Callable[[], Written]:
        name = call.name.lower()
        if name in _GONE:
            problem, hint = _GONE[name]
            raise self.reader.refused(call.at, problem, hint)
        name = _OURS.get(name, name)
        if name in _SIGNATURES:
            arguments = _Arguments(self, call, _SIGNATURES[name])
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
            said = self.value(given)
            parts.append([f"{given.name} => ", *said] if given.name else said)
        return [f"{name}(", *joined(parts), ")"]

    # --- LLMMap -----------------------------------------------------------------------------------

    def _map(self, given: _Arguments) -> Written:
        values = given.values
        context = given.one("context")
        if not values and context is not None:  # the value's name in old versions
            values, context = [context], None
        if not values:
            raise self.reader.refused(
                given.call.at,
                f"{given.call.name}: no column to ask about",
                given.signature.spelling,
            )
        parts: list[Iterable[Piece | str]] = [given.text("question")]
        parts += [self.value(value) for value in values]
        if context is not None:
            is_query = self.reader.is_query(context.start, context.stop)
            parts.append(self._told(context) if is_query else self.value(context))
        parts += self._options(given)
        return ["llm_map(", *joined(parts), ")"]

    def _told(self, context: Given) -> Written:
        """The rows of a context that all values share, as one text."""
        table = self._table(context)
        fields = [
            c if len(table.columns) == 1 else f"{quoted(f'{label}: ')} || {c}"
            for c, label in zip(table.columns, table.labels, strict=True)
        ]
        row = fields[0] if len(fields) == 1 else f"concat_ws(', ', {', '.join(fields)})"
        row = f"CAST({row} AS VARCHAR)"
        return [f"(SELECT string_agg({row}, '; ' ORDER BY {row}) FROM ", *table.source, ")"]

    # --- LLMQA, LLMValidate -----------------------------------------------------------------------

    def _context_call(self, given: _Arguments, name: str) -> Written:
        call = given.call
        function = "llm_qa" if name == "llmqa" else "llm_validate"
        question = given.text(
            "question" if given.one("question") else given.signature.positional[0]
        )
        options = self._options(given)
        contexts = given.contexts
        template = "".join(p if isinstance(p, str) else p.text for p in question).count("{}")
        listed = self._list_place(call)
        if template:
            if function == "llm_validate" or len(contexts) != template:
                raise self.reader.refused(
                    call.at,
                    f"{call.name}: {template} placeholders {{}} for {len(contexts)} context(s)",
                    "With {} in the question each context gives its first value, and no more.",
                )
            return self._first_values(question, contexts, options)
        in_place = self._in_place(call, contexts)
        if in_place is not None:
            return [f"{function}(", *joined([question, in_place, *options]), ")"]
        table = self._context_table(contexts)
        head: Written = [
            f"{function}(",
            *joined([question, *([c] for c in table.columns), *options]),
        ]
        if table.order:
            head += [" ORDER BY ", table.order]
        head.append(")")
        return self._placed(listed, given, head, table.source)

    def _placed(
        self, place: str | None, given: _Arguments, head: Written, source: Written
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
            if items is None or count is None or count.min_items != items:
                raise self.reader.refused(
                    given.call.at,
                    f"VALUES {given.call.name}: how many columns is not said",
                    "Say how many answers there are: quantifier='{3}'.",
                )
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
        if len(contexts) != 1 or not self._is_column(contexts[0]):
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
    ) -> Written:
        """A question with placeholders, about the first value of each context."""
        tables = [self._table(context) for context in contexts]
        if len(tables) == 1:
            asked = joined([question, [tables[0].columns[0]], *options])
            return ["(SELECT llm_map(", *asked, ") FROM ", *tables[0].source, tables[0].first, ")"]
        names = [f"value{i}" for i in range(1, len(tables) + 1)]
        firsts: list[Iterable[Piece | str]] = [
            [f"(SELECT {t.columns[0]} FROM ", *t.source, f"{t.first}) AS {name}"]
            for t, name in zip(tables, names, strict=True)
        ]
        asked = joined([question, *([n] for n in names), *options])
        return ["(SELECT llm_map(", *asked, ") FROM (SELECT ", *joined(firsts), ") AS context)"]

    # --- contexts ---------------------------------------------------------------------------------

    def _context_table(self, contexts: Sequence[Given]) -> _Table:
        if not contexts:
            return _Table([f"(VALUES ({quoted(_NO_CONTEXT)})) AS none(context)"], ["context"])
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
        return _Table(["(", *union, ") AS contexts"], [quoted_name(n) for n in labels], labels)

    def _table(self, context: Given) -> _Table:
        """A context as a relation with columns that have names."""
        reader = self.reader
        if reader.is_query(context.start, context.stop):
            return self._query(context)
        kind = reader.kind(context.start)
        one = context.stop == context.start + 1
        if one and kind == TokenType.STRING and "::" not in reader.tokens[context.start].text:
            literal = reader.written(context.start, context.stop)
            return _Table([f"(VALUES ({literal})) AS given(context)"], ["context"], ["context"])
        if self._is_column(context):
            name, relation = self._base(context)
            return _Table([relation], [quoted_name(name)], [name])
        inner = self.value(context)
        return _Table(["(SELECT ", *inner, " AS context)"], ["context"], ["context"])

    def _query(self, context: Given) -> _Table:
        inside = _Inside(self.reader, context)
        names = inside.outputs()
        terms, added = inside.order()
        if added:
            self.weaver.behind[inside.items_end] = added
        source = self.weaver.woven(context.start, context.stop)
        order = ", ".join(terms)
        if names is None:
            schema = self._schema(inside.text, context.start)
            if schema is None:
                raise self.reader.refused(
                    context.start,
                    "the columns of this context are not known",
                    "Name them in its SELECT in the place of *.",
                )
            listed = [str(name) for name in schema.names]
            return _Table([*source, " AS context"], list(map(quoted_name, listed)), listed, order)
        labels = _unique([name for name, _ in names])
        if all(written for _, written in names) and labels == [name for name, _ in names]:
            return _Table([*source, " AS context"], [w for _, w in names], labels, order)
        columns = list(map(quoted_name, labels))
        hidden = [term.split()[0] for term in terms]
        alias = f" AS context({', '.join([*columns, *hidden])})"
        return _Table([*source, alias], columns, labels, order)

    # --- columns and options ----------------------------------------------------------------------

    def value(self, given: Given) -> Written:
        """An argument as a value: ``'table::column'`` is a column."""
        reader = self.reader
        if given.stop == given.start + 1 and reader.kind(given.start) == TokenType.STRING:
            text = reader.tokens[given.start].text
            if "::" in text:
                table, _, column = text.partition("::")
                return [f"{_name(table)}.{_name(self._actual(table, column, given.start))}"]
        return list(self.weaver.woven(given.start, given.stop))

    def _actual(self, table: str, column: str, at: int) -> str:
        """The column as its table writes it: names in quotes had no case in SQLite."""
        source = self.reader.relation(table, at)
        relation = self._relation(source, table) if source is not None else _name(table)
        schema = self._schema(f"SELECT * FROM {relation}", at)
        names = [] if schema is None else [str(n) for n in schema.names]
        same = [n for n in names if n.casefold() == column.casefold()]
        return column if column in names or len(same) != 1 else same[0]

    def _is_column(self, given: Given) -> bool:
        reader = self.reader
        if given.stop == given.start + 1 and reader.kind(given.start) in (
            TokenType.STRING,
            TokenType.IDENTIFIER,
        ):
            return reader.kind(given.start) == TokenType.IDENTIFIER or "::" in (
                reader.tokens[given.start].text
            )
        constant = reader.word(given.start) in ("NULL", "NONE", "TRUE", "FALSE")
        return not constant and reader.column_end(given.start) == given.stop

    def _base(self, given: Given) -> tuple[str, str]:
        """(name, relation) of a column: the relation as it stands in FROM, without a filter."""
        reader = self.reader
        first = reader.tokens[given.start]
        if "::" in first.text and given.stop == given.start + 1:
            table, _, column = first.text.partition("::")
            source = reader.relation(table, given.start)
            column = self._actual(table, column, given.start)
            return column, self._relation(source, table) if source else _name(table)
        column = reader.name(given.stop - 1)
        if given.stop - given.start == 1:
            around = reader.around(given.start)
            sources = [s for select, _ in around[:1] for s in reader.sources(select)]
            having = [s for s in sources if len(sources) == 1 or self._has(s, column, given.start)]
            if len(having) != 1:
                raise reader.refused(
                    given.start, f"'{column}': of which table?", f"Write table.{column}."
                )
            return column, self._relation(having[0], "")
        table = reader.name(given.stop - 3)
        source = reader.relation(table, given.start)
        if source is None:
            return column, reader.written(given.start, given.stop - 2)
        return column, self._relation(source, table)

    def _has(self, source: Source, column: str, at: int) -> bool:
        schema = self._schema(f"SELECT * FROM {self._relation(source, '')}", at)
        return schema is not None and column in schema.names

    def _relation(self, source: Source, name: str) -> str:
        """A relation of FROM by itself, in our words."""
        stop = source.end if source.kind == "table" else source.stop
        return "".join(p.text for p in self.weaver.woven(source.start, stop))

    def _schema(self, query: str, at: int) -> pa.Schema | None:
        """The schema of a query that stands at ``at``, in our words or BlendSQL's."""
        reader = self.reader
        common = visible_tables(reader.text, reader.tokens, reader.tokens[at].start)
        if common and query[:4].upper() == "WITH":
            query = f"SELECT * FROM ({query})"
        return self.known.schema(common + query)

    def _options(self, given: _Arguments) -> list[Written]:
        """The named arguments of ours that those of a call become."""
        written: list[Written] = []
        options = given.one("options")
        returns = given.returns
        said = options is not None or returns is not None or given.one("regex") is not None
        if options is not None and self.reader.word(options.start) not in ("NONE", "NULL"):
            written.append(["options => ", *self._set(options)])
        elif not said:
            inferred = self._inferred(given.call)
            if inferred is not None:
                written.append([f"options => {inferred}"])
        returns = self._returned(given)
        if returns is not None:
            written.append([f"returns => {quoted(returns)}"])
        for name in ("regex", "on_error", "examples"):
            other = given.one(name)
            if other is not None:
                written.append([f"{name} => ", *self.weaver.woven(other.start, other.stop)])
        return written

    def _returned(self, given: _Arguments) -> str | None:
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
            if "::" not in text:
                options = [part.strip() for part in text.split(";")]
                return [f"[{', '.join(quoted(o) for o in options if o)}]"]
        if is_call(reader, given.start) or read_named(reader, given.start) is not None:
            inner = read_call(reader, given.start) if is_call(reader, given.start) else None
            listed = (
                inner is not None
                and _Arguments(
                    self,
                    inner,
                    _SIGNATURES.get(_OURS.get(inner.name.lower(), inner.name.lower()), _ANY),
                ).is_list
            )
            written = self.weaver.woven(given.start, given.stop)
            if listed:
                return ["(SELECT unnest(answers) FROM (SELECT ", *written, " AS answers))"]
            return ["(SELECT ", *written, ")"]
        if self._is_column(given) and not reader.written(given.start, given.stop).startswith("$"):
            name, relation = self._base(given)
            return [f"(SELECT {quoted_name(name)} FROM {relation})"]
        return list(self.weaver.woven(given.start, given.stop))

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
        column = Given(None, start, stop)
        try:
            name, relation = self._base(column)
        except QueryError:  # of several tables: DataFusion says so
            return None
        query = f"SELECT {quoted_name(name)} FROM {relation}"
        schema = self._schema(query, start)
        texts = schema is not None and len(schema.types) == 1 and _is_text(schema.types[0])
        return f"({query})" if texts else None

    # --- LLMJoin ----------------------------------------------------------------------------------

    def _join(self, given: _Arguments) -> Callable[[], Written]:
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
            text = reader.tokens[side.start].text
            known = "::" in text and side.stop == side.start + 1
            tables.append(text.partition("::")[0] if known else reader.name(side.start))
        new = [t for t in tables if t not in before]
        if len(new) != 1:
            raise reader.refused(
                call.at,
                f"{call.name}: which table is joined?",
                "Write JOIN table ON {{LLMJoin(…)}}.",
            )
        return _name(new[0])


@dataclass(slots=True)
class _Table:
    """A context in FROM: its columns as they are written, their names, and the order of its rows."""

    source: Written
    columns: list[str]
    labels: Sequence[str] = ("context",)
    order: str = ""

    @property
    def first(self) -> str:
        """What leaves its first row."""
        return f" ORDER BY {self.order} LIMIT 1" if self.order else " LIMIT 1"


class _Inside:
    """A subquery that is an argument, read by itself."""

    def __init__(self, around: Reader, given: Given) -> None:
        start, stop = given.start, given.stop
        while around.opens(start):
            start, stop = start + 1, stop - 1
        self.start = start
        self.text = around.written(start, stop)
        self.reader = Reader(self.text)
        found = self.reader.outer
        self.query: Query | None = found[0] if found else None

    @property
    def first(self) -> Select | None:
        """Its first SELECT, which names its columns."""
        branch: Select | Query | None = self.query
        while isinstance(branch, Query):
            branch = branch.branches[0] if branch.branches else None
        return branch

    @property
    def items_end(self) -> int:
        """The last token of the items of its first SELECT, in the text around."""
        assert self.first is not None
        return self.start + self.first.items[1] - 1

    def outputs(self) -> list[tuple[str, str]] | None:
        """(name, how it is written, '' where it has none) of each column; None if a star stands for
        some."""
        reader = self.reader
        if reader.word(0) == "VALUES":
            count = len(reader.parts(2, reader.close[1])) if reader.opens(1) else 1
            return [(f"value {i}" if count > 1 else "value", "") for i in range(1, count + 1)]
        if self.first is None:
            return None
        items = reader.items(self.first)
        if any(self._is_star(*item) for item in items):
            return None
        return [self._output(start, stop) for start, stop in items]

    def _is_star(self, start: int, stop: int) -> bool:
        """``*``, ``t.*``, ``* EXCLUDE (…)``."""
        qualified = self.reader.kind(start + 1) == TokenType.DOT
        at = start + 2 if qualified else start
        return at < stop and self.reader.kind(at) == TokenType.STAR

    def _output(self, start: int, stop: int) -> tuple[str, str]:
        reader, last = self.reader, stop - 1
        column = reader.column_end(start) == stop
        behind = reader.kind(stop - 2) in _OPERAND_ENDS or reader.is_name(stop - 2)
        named = reader.is_name(last) and reader.word(last) != "END"
        aliased = reader.word(stop - 2) == "AS" or (named and stop - start > 1 and behind)
        if not column and aliased and reader.kind(last) == TokenType.STRING:
            return reader.tokens[last].text, quoted_name(reader.tokens[last].text)
        if column or aliased:
            return reader.name(last), reader.written(last, stop)
        return " ".join(reader.written(start, stop).split()), ""

    def order(self) -> tuple[list[str], str]:
        """Its ORDER BY as that of an aggregate over its rows, and the items that this needs; nothing
        where what it is ordered by is no expression of them."""
        reader, query, branch = self.reader, self.query, self.first
        if query is None or branch is None or query.branches != [branch]:
            return [], ""
        at = branch.end
        distinct = reader.word(branch.items[0]) == "DISTINCT"
        if at >= query.end or reader.kind(at) != TokenType.ORDER_BY or distinct:
            return [], ""
        stop = at + 1
        while stop < query.end and reader.word(stop) not in ("LIMIT", "OFFSET", "FETCH"):
            stop = reader.close.get(stop, stop) + 1
        named = {name for name, _ in self.outputs() or []}
        terms, added = [], []
        for number, (start, end) in enumerate(reader.parts(at + 1, stop), 1):
            last = end
            while reader.word(last - 1) in ("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                last -= 1
            calls = any(is_call(reader, i) for i in range(start, last))
            alias = last == start + 1 and reader.name(start) in named
            if reader.kind(start) == TokenType.NUMBER or calls:
                return [], ""
            if (
                alias
                and reader.column_end(start) == last
                and not self._is_plain(reader.name(start))
            ):
                return [], ""
            terms.append(f"order{number} {reader.written(last, end)}".strip())
            added.append(f", {reader.written(start, last)} AS order{number}")
        return terms, "".join(added)

    def _is_plain(self, name: str) -> bool:
        """The output of this name is the column of this name."""
        assert self.first is not None
        return any(
            self.reader.column_end(start) == stop and self.reader.name(stop - 1) == name
            for start, stop in self.reader.items(self.first)
        )


class _Arguments:
    """The arguments of one call, by the names that its function gives them."""

    def __init__(self, text: _BlendSQL, call: Braces, signature: _Signature) -> None:
        self.text_ = text
        self.reader = text.reader
        self.call = call
        self.signature = signature
        self.named: dict[str, Given] = {}
        self.values: list[Given] = []
        """Those of LLMMap."""
        self.contexts: list[Given] = []
        """Those of the others."""
        for place, given in enumerate(call.given):
            self._take(place, given)
        first = signature.positional[:1]
        if first and first[0] not in self.named and "question" not in self.named:
            raise self.reader.refused(
                call.at, f"{call.name}: the {first[0]} is missing", signature.spelling
            )
        context = self.named.get("context")
        if context is not None and "values" not in signature.positional:
            self.contexts.append(context)

    def _take(self, place: int, given: Given) -> None:
        name = given.name
        positional = self.signature.positional
        if name is None:
            if any(g.name is not None for g in self.call.given[:place]):
                raise self.reader.refused(given.start, "a positional argument follows a named one")
            if place < len(positional) and positional[place] != "values":
                self.named[positional[place]] = given
            elif "values" in positional:
                self.values.append(given)
            elif positional[0] != "left_on":
                self.contexts.append(given)
            else:
                raise self.reader.refused(
                    given.start, f"{self.call.name} takes two columns", self.signature.spelling
                )
            return
        if name == "values" and "values" in positional:
            self.values.append(given)
        elif name in self.named:
            raise self.reader.refused(given.start, f"{self.call.name}: '{name}' is given twice")
        elif name in self.signature.named or name in positional:
            self.named[name] = given
        elif name in _NO_ARGUMENT and self._is_default(name, given):
            return
        else:
            allowed = [*positional, *sorted(self.signature.named)]
            raise self.reader.refused(
                given.start - 2,
                f"{self.call.name} takes no '{name}'",
                _NO_ARGUMENT.get(name) or close_matches(name, allowed),
            )

    def _is_default(self, name: str, given: Given) -> bool:
        word = self.reader.word(given.start)
        return word in ("NONE", "NULL") or (
            name in ("long_answer", "use_option_aliases") and word == "FALSE"
        )

    def one(self, name: str) -> Given | None:
        """The argument of a name; None if it was not given, or given as None."""
        given = self.named.get(name)
        none = given is not None and given.stop == given.start + 1
        if given is not None and none and name != "options":
            return None if self.reader.word(given.start) in ("NONE", "NULL") else given
        return given

    def text(self, name: str) -> Written:
        """A text argument as a literal; in old queries some stand in double quotes."""
        given = self.named.get(name)
        if given is None:
            raise self.reader.refused(
                self.call.at, f"{self.call.name}: the {name} is missing", self.signature.spelling
            )
        start, stop = given.start, given.stop
        token = self.reader.tokens[start]
        if stop == start + 1 and token.token_type == TokenType.IDENTIFIER:
            return [Piece(quoted(token.text), *self.reader.span(start, stop))]
        parameter = self.reader.written(start, stop).startswith("$")
        if stop != start + 1 or not (token.token_type == TokenType.STRING or parameter):
            raise self.reader.refused(
                start, f"{self.call.name}: the {name} is a text", self.signature.spelling
            )
        return list(self.text_.weaver.woven(start, stop))

    @property
    def quantifier(self) -> str | None:
        """``*``, ``+``, ``{3}``, ``{1,2}`` or ``{2,}``: how many items a list has."""
        given = self.one("quantifier")
        if given is None:
            return None
        text = self._plain(given)
        if returned(f"list{text}") is None:
            raise self.reader.refused(
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
        if text.lstrip().startswith("{"):
            raise self.reader.refused(
                given.start,
                "an answer is one value or one list: a JSON schema is no type here",
                "Ask for each field by itself, each with its return_type.",
            )
        name = _TYPES.get(text, text)
        if returned(name) is None:
            raise self.reader.refused(given.start, f"return_type={text!r} is not a type", _FEW)
        if self.quantifier is not None:
            listed = name if name.startswith("list") else f"list[{name}]"
            listed = listed.replace("list[str]", "list").replace("list[text]", "list")
            if returned(listed + self.quantifier) is None:
                raise self.reader.refused(given.start, f"no lists of {text!r}", _FEW)
            return listed + self.quantifier
        return name

    @property
    def is_list(self) -> bool:
        """The answer is a list."""
        return (self.returns or "").startswith("list") or self.quantifier is not None

    def _plain(self, given: Given) -> str:
        token = self.reader.tokens[given.start]
        if given.stop != given.start + 1 or token.token_type not in (
            TokenType.STRING,
            TokenType.IDENTIFIER,
            TokenType.VAR,
        ):
            raise self.reader.refused(given.start, "a text is expected here")
        return str(token.text)


_ANY = _Signature((), frozenset(), "")
_OPERAND_ENDS = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING)
_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*")


def _name(name: str) -> str:
    """A name as an identifier, in quotes where it needs them."""
    return name if _SIMPLE.fullmatch(name) else quoted_name(name)


def _unique(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that were there already."""
    found: dict[str, int] = {}
    for name in names:
        new, i = name, 1
        while new in found:
            i += 1
            new = f"{name} {i}"
        found[new] = 1
    return list(found)


def _text_of(part: Piece | str) -> str:
    return part if isinstance(part, str) else part.text


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
