"""Evaluates the functions that users write in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.errors import ArgumentError
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import UserAggregate, UserBody
from blendfusion.udfs.evaluate.distinct import Column
from blendfusion.udfs.evaluate.row_keys import Key, row_keys
from blendfusion.udfs.evaluate.stored_results import StoredResults


def run_body(
    kind: UserBody, call: Call, columns: Sequence[Column], dispatcher: Dispatcher
) -> pa.Array:
    """The results of a user's function, one a row.

    Its body sees each distinct row of values once a run, and no row or group that is NULL
    throughout.
    The lists of an aggregate without an order are sorted, so that they do not depend on the plan.
    """
    literals = json.loads(call.literals) if call.literals else {}
    leading = [literals.pop(p.name) for p in call.ingredient.leading]
    arrays, rows = _arguments(kind, call, columns)
    results = dispatcher.results_of(call)
    first = _first_places(row for row in enumerate(rows) if row[1] not in results.places)
    keys = [a.take(pa.array(first.values(), pa.int64())) for a in arrays]
    present = pc.invert(_all_null(keys)).to_numpy(zero_copy_only=False)
    inputs = [k.filter(pa.array(present)) for k in keys]
    if len(inputs[0]):

        def run(columns: Sequence[pa.Array]) -> tuple[pa.Array, bool]:
            model = UserModel(dispatcher, call)
            answers = kind.body(model, *leading, *columns, **literals)
            return _check_result(call, answers, len(columns[0])), model.repeats

        before = results.stored
        if kind.code:
            results.arrays.append(_with_stored(kind, call, inputs, dispatcher, run))
        else:
            results.arrays.append(run(inputs)[0])
        dispatcher.computed += len(inputs[0]) - (results.stored - before)
    places = np.where(present, len(results) - len(inputs[0]) + np.cumsum(present) - 1, -1)
    results.places.update(zip(first, places.tolist(), strict=True))
    taken = np.fromiter((results.places[row] for row in rows), np.int64, len(rows))
    known = pa.concat_arrays([*results.arrays, pa.nulls(0, call.type)])
    return known.take(pa.array(taken, mask=taken < 0))


def new_rows(
    kind: UserBody, call: Call, columns: Sequence[Column], dispatcher: Dispatcher
) -> tuple[np.ndarray, int]:
    """(true for the rows that the body of a function has to see, the number of distinct ones among
    them): neither this run nor an earlier one has their results, and they are not NULL."""
    arrays, rows = _arguments(kind, call, columns)
    met = dispatcher.results_of(call).places
    first = _first_places(row for row in enumerate(rows) if row[1] not in met)
    keys = [a.take(pa.array(first.values(), pa.int64())) for a in arrays]
    free = _all_null(keys).to_numpy(zero_copy_only=False)
    if kind.code:
        free = free.copy()
        inputs = list(zip(*(k.to_pylist() for k in keys), strict=True))
        free[list(StoredResults(kind, call, dispatcher).find(inputs))] = True
    new = {row for row, is_free in zip(first, free, strict=True) if not is_free}
    return np.fromiter((row in new for row in rows), bool, len(rows)), len(new)


def _arguments(
    kind: UserBody, call: Call, columns: Sequence[Column]
) -> tuple[list[pa.Array], list[Key]]:
    """The values of a function's columns, and the same by rows, which can be keys."""
    arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    if isinstance(kind, UserAggregate):
        arrays = _groups(arrays, ordered=call.ordered)
    return arrays, row_keys(arrays, len(arrays[0]) if arrays else 0)


def _first_places(rows: Iterable[tuple[int, object]]) -> dict[object, int]:
    """The place of the first of equal rows."""
    first: dict[object, int] = {}
    for i, row in rows:
        first.setdefault(row, i)
    return first


def _with_stored(
    kind: UserBody,
    call: Call,
    inputs: Sequence[pa.Array],
    dispatcher: Dispatcher,
    run: Callable[[Sequence[pa.Array]], tuple[pa.Array, bool]],
) -> pa.Array:
    """The results of a deterministic function: ``run`` gives those that are not stored, and whether
    they may be."""
    stored = StoredResults(kind, call, dispatcher)
    rows = list(zip(*(a.to_pylist() for a in inputs), strict=True))
    found = stored.find(rows)
    dispatcher.results_of(call).stored += len(found)
    missing = [i for i in range(len(rows)) if i not in found]
    known = stored.decode(list(found.values()))
    if not missing:
        return known
    new, repeats = run([a.take(pa.array(missing)) for a in inputs] if found else inputs)
    if repeats:
        stored.keep([rows[i] for i in missing], new)
    place = np.argsort(np.array([*found, *missing]), kind="stable")
    return pa.concat_arrays([known, new]).take(pa.array(place))


def _groups(columns: Sequence[pa.Array], *, ordered: bool) -> list[pa.Array]:
    """The lists of each group without rows that are NULL throughout; NULL for a group without
    others."""
    groups: list[list[tuple[Any, ...]] | None] = []
    for lists in zip(*(c.to_pylist() for c in columns), strict=True):
        listed = zip(*(one or [] for one in lists), strict=True)
        rows = [row for row in listed if any(value is not None for value in row)]
        if not ordered:
            rows.sort(key=lambda row: [(value is None, value) for value in row])
        groups.append(rows or None)
    return [
        pa.array([g and [row[i] for row in g] for g in groups], column.type)
        for i, column in enumerate(columns)
    ]


def _all_null(keys: Sequence[pa.Array]) -> pa.Array:
    result = keys[0].is_null()
    for key in keys[1:]:
        result = pc.and_(result, key.is_null())
    return result


def _check_result(call: Call, answers: Any, length: int) -> pa.Array:
    name = call.ingredient.name
    if isinstance(answers, pa.ChunkedArray):
        answers = answers.combine_chunks()
    if not isinstance(answers, pa.Array):
        answers = pa.array(answers)
    if len(answers) != length:
        raise ArgumentError(f"{name} returned {len(answers)} values for {length} rows")
    return answers if answers.type == call.type else answers.cast(call.type)
