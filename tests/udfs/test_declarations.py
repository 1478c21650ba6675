"""The declarations of the functions: what is made of them, and what SQL and Python take."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from datafusion import Expr

import blendfusion as bf
from blendfusion.apps.cli.function_table import function_table
from blendfusion.language.query_text.type_calls import type_calls
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.call_registry import CALLS
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import CHECK
from blendfusion.udfs.declare.parameter import AnyParameter
from blendfusion.udfs.functions import FUNCTIONS
from blendfusion.udfs.functions.declarations import INGREDIENTS
from blendfusion.udfs.register import python_functions
from blendfusion.udfs.register.stub import stub
from blendfusion.udfs.register.user_functions import known_ingredients

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "functions.md"
TO_HERE = "<!-- to here -->\n"

SQL = {
    "question": "'What, exactly?'",
    "claim": "'It''s good.'",
    "labels": "['a', 'b']",
    "schema": "'name TEXT, year INT'",
    "operator": "'<'",
    "options": "['a', 'b']",
    "regex": "'[a-z]+'",
    "examples": "[['v', 'true']]",
    "sample": "['u', 'w']",
    "consistency": "3",
    "confidence": "0.9",
    "threshold": "0.8",
    "calibrated": "'late'",
    "review": "'todo'",
    "levels": "['low', 'high']",
    "evidence": "TRUE",
    "reasoning": "99",
    "reasons": "TRUE",
    "model": "['small', 'large']",
    "accuracy": "0.9",
    "recall": "0.8",
    "precision": "0.7",
    "delta": "0.1",
    "proxy": "'embedding'",
    "on_error": "'raise'",
    "low": "1",
    "high": "5",
    "how": "'the same author'",
    "by": "'the same author'",
    "into": "3",
    "level": "2",
    "describe": "true",
    "list_size": "5",
    "write": "'the full name'",
    "name": "'complaints'",
    "scores": "'How good?'",
    "retries": "1",
    "language": "'German'",
    "also": "'names'",
    "many": "TRUE",
    "exact": "TRUE",
    "label_question": "'Which?'",
    "match": "'different'",
    "check": "7",
    "k": "3",
}
"""An argument for each parameter, as SQL."""
PYTHON = {
    "question": "What, exactly?",
    "claim": "It's good.",
    "labels": ["a", "b"],
    "schema": "name TEXT, year INT",
    "operator": "<",
    "options": ["a", "b"],
    "regex": "[a-z]+",
    "examples": [["v", "true"]],
    "sample": ["w", "u", None],
    "consistency": 3,
    "confidence": 0.9,
    "threshold": 0.8,
    "calibrated": "late",
    "review": "todo",
    "levels": ["low", "high"],
    "evidence": True,
    "reasoning": 99,
    "reasons": True,
    "model": ["small", "large"],
    "accuracy": 0.9,
    "recall": 0.8,
    "precision": 0.7,
    "delta": 0.1,
    "proxy": "embedding",
    "on_error": "raise",
    "low": 1,
    "high": 5,
    "how": "the same author",
    "by": "the same author",
    "into": 3,
    "level": 2,
    "describe": True,
    "list_size": 5,
    "write": "the full name",
    "name": "complaints",
    "scores": "How good?",
    "retries": 1,
    "language": "German",
    "also": "names",
    "many": True,
    "exact": True,
    "label_question": "Which?",
    "match": "different",
    "check": 7,
    "k": 3,
}
"""The same as Python objects."""
BESIDE = {
    "accuracy": ("model",),
    "recall": ("model",),
    "precision": ("model",),
    "delta": ("recall", "model"),
    "proxy": ("recall",),
    "label_question": ("labels",),
    "match": ("labels",),
    "retries": ("check",),
    "reasons": ("reasoning",),
}
"""The options that an option needs beside it."""
CLOSED_SETS = ("confidence", "sample", "accuracy", "recall", "precision", "delta", "proxy")
YES_OR_NO = ("sample", "recall", "precision", "delta", "proxy")


def sql_of(ingredient: Ingredient, option: AnyParameter) -> tuple[str, object]:
    """An argument of an option, as SQL and as a Python object."""
    if option.name == "returns":
        return ("'list{1,3}'", "list{1,3}") if "lists" in option.doc else ("'int'", "int")
    if option.name == "confidence" and ingredient.name == "llm_score":
        return "'all'", "all"
    if option.name == "examples" and ingredient.name == "llm_extract":
        return "[['v', {'name': 'w', 'year': 3}]]", [["v", {"name": "w", "year": 3}]]
    if option.name == "examples" and ingredient.returns is not None:
        shown = {
            "integer": "3",
            "number": "2.5",
            "date": "2024-02-29",
            "score": "3",
            "list": '["a"]',
        }
        given = next(iter(ingredient.returns.options), shown.get(ingredient.returns.kind, "true"))
        return f"[['v', '{given}']]", [["v", given]]
    if option.name == "examples" and ingredient.name == "llm_classify":
        return "[['v', 'a']]", [["v", "a"]]
    if option is CHECK:
        return "'answer IS NOT NULL'", "answer IS NOT NULL"
    return SQL[option.name], PYTHON[option.name]


def options_of(ingredient: Ingredient, option: AnyParameter) -> list[AnyParameter]:
    """The option, with those that it needs beside it for this function."""
    names = [*BESIDE.get(option.name, ()), option.name]
    if ingredient.parameter("recall") is None:
        names = ["accuracy" if name == "recall" else name for name in names]
    if (
        option.name in CLOSED_SETS
        and ingredient.returns is None
        and ingredient.name != "llm_classify"
    ):
        names.insert(0, "returns" if option.name in YES_OR_NO else "options")
    if option.name in CLOSED_SETS and ingredient.name == "llm_text":
        names.insert(0, "options")
    found = [ingredient.parameter(name) for name in dict.fromkeys(names)]
    return [p for p in found if p is not None]


def sql_call(ingredient: Ingredient, options: list[AnyParameter]) -> str:
    columns = ["x"] if isinstance(ingredient.values, str) else ["x", "y"][: len(ingredient.values)]
    parts = [SQL[p.name] for p in ingredient.leading]
    parts += [*columns[:1], *(SQL[p.name] for p in ingredient.between), *columns[1:]]
    parts += [SQL[p.name] for p in ingredient.trailing]
    parts += [f"{p.name} => {argument(ingredient, p, options)[0]}" for p in options]
    return f"{ingredient.name}({', '.join(parts)})"


def argument(
    ingredient: Ingredient, option: AnyParameter, options: list[AnyParameter]
) -> tuple[str, object]:
    """An argument of an option; a Boolean type where another option needs one."""
    yes_or_no = any(p.name in YES_OR_NO for p in options)
    if option.name == "returns" and yes_or_no:
        return "'bool'", "bool"
    if option.name == "model" and any(p.name == "proxy" for p in options):
        return "'large'", "large"
    return sql_of(ingredient, option)


def python_call(ingredient: Ingredient, options: list[AnyParameter]) -> Expr:
    columns = ["x"] if isinstance(ingredient.values, str) else ["x", "y"][: len(ingredient.values)]
    parts: list[object] = [PYTHON[p.name] for p in ingredient.leading]
    parts += [*columns[:1], *(PYTHON[p.name] for p in ingredient.between), *columns[1:]]
    parts += [PYTHON[p.name] for p in ingredient.trailing]
    function: Callable[..., Expr] = getattr(bf, ingredient.name)
    return function(*parts, **{p.name: argument(ingredient, p, options)[1] for p in options})


def bound(sql: str) -> Call:
    (call,) = type_calls(f"SELECT {sql} AS answer FROM t", known_ingredients()).calls
    return call


CASES = [(i, options_of(i, p)) for i in INGREDIENTS for p in i.options] + [
    (i, []) for i in INGREDIENTS
]


def shown(case: tuple[Ingredient, list[AnyParameter]]) -> str:
    return f"{case[0].name}-{'-'.join(p.name for p in case[1])}"


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_sql_and_python_take_the_same_options(
    case: tuple[Ingredient, list[AnyParameter]],
) -> None:
    ingredient, options = case
    call = bound(sql_call(ingredient, options))
    expr = python_call(ingredient, options)
    again = CALLS.get(call.name)
    assert again == call
    assert expr.schema_name() == call.to_sql(call.task.columns if call.comparing is None else "xy")
    assert call.name in str(expr)


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_the_text_of_a_call_is_a_call_that_is_equal(
    case: tuple[Ingredient, list[AnyParameter]],
) -> None:
    call = bound(sql_call(*case))
    again = bound(call.text)
    assert again == call
    assert again.shown == call.shown


def test_calls_that_differ_have_texts_that_differ() -> None:
    calls = [bound(sql_call(ingredient, options)) for ingredient, options in CASES]
    for one, other in itertools.combinations(calls, 2):
        assert (one.text == other.text) == (one == other)


@pytest.mark.parametrize(
    ("name", "option", "argument"),
    [
        ("llm_int", "labels", ["a", "b"]),
        ("llm_float", "labels", ["a", "b"]),
        ("llm_bool", "returns", "int"),
        ("llm_date", "returns", "int"),
        ("llm_filter", "regex", "x"),
        ("llm_filter", "options", ["a", "b"]),
        ("llm_list", "regex", "x"),
        ("llm_list", "returns", "int"),
        ("llm_summarize", "options", ["a", "b"]),
        ("llm_validate", "question", "Which?"),
        ("llm_join", "options", ["a", "b"]),
    ],
)
def test_an_option_that_contradicts_the_function_is_refused(
    name: str, option: str, argument: object
) -> None:
    ingredient = known_ingredients()[name]
    literal = argument if isinstance(argument, list) else f"'{argument}'"
    call = sql_call(ingredient, []).removesuffix(")")
    with pytest.raises(bf.ArgumentError, match=f"{name}: .*{option}") as in_sql:
        bound(f"{call}, {option} => {literal})")
    columns = ["x"] if isinstance(ingredient.values, str) else ["x", "y"][: len(ingredient.values)]
    leading = [PYTHON[p.name] for p in ingredient.leading]
    with pytest.raises(bf.ArgumentError, match=f"{name}: .*{option}") as in_python:
        getattr(bf, name)(*leading, *columns, **{option: argument})
    assert in_sql.value.message == in_python.value.message


@pytest.mark.parametrize("ingredient", INGREDIENTS, ids=lambda i: i.name)
def test_the_python_function_has_the_declared_signature(ingredient: Ingredient) -> None:
    function = getattr(bf, ingredient.name)
    declared = inspect.signature(function).parameters
    for parameter in ingredient.parameters:
        assert parameter.name in declared
        assert f"``{parameter.name}``" in (function.__doc__ or "")
    assert ingredient.doc
    assert ingredient.result


def test_the_stub_of_the_functions_is_up_to_date() -> None:
    path = Path(python_functions.__file__).with_suffix(".pyi")
    assert path.read_text("utf-8") == stub(), "make stubs"


def test_the_page_has_the_table_of_functions(update_golden: bool) -> None:
    head, rest = GUIDE.read_text("utf-8").split("<!-- functions -->\n")
    old, tail = rest.split(TO_HERE, 1)
    if update_golden:
        GUIDE.write_text(f"{head}<!-- functions -->\n{function_table()}{TO_HERE}{tail}", "utf-8")
    else:
        assert old == function_table(), "pytest tests/udfs/test_declarations.py --update-golden"


def test_the_package_shows_its_public_names_only() -> None:
    assert dir(bf) == sorted(bf.__all__)
    assert {*FUNCTIONS} < {*dir(bf)}
