"""The remedy for an attribute that frames of pandas or Polars have, and this one has not."""

from __future__ import annotations

from collections.abc import Collection

from blendfusion.errors import close_matches, remedy_for

_PANDAS = "frame.to_pandas() has it, after a run"
_FORMS = {
    "groupby group_by": "frame.aggregate(['product'], [functions.count(lit(1)).alias('n')])",
    "merge": "frame.join(other, on='id')",
    "sort_values order_by": "frame.sort('stars'), frame.sort(col('stars').sort(ascending=False))",
    "query where": "frame.filter('stars < 3')",
    "assign": "frame.with_columns(days=bf.llm_int('How many days?', 'text'))",
    "rename": "frame.with_column_renamed('old', 'new')",
    "explode unnest": "frame.unnest_columns('tags')",
    "value_counts": "frame.aggregate(['product'], [functions.count(lit(1)).alias('n')])",
    "drop_duplicates unique": "frame.distinct()",
    "fillna": "frame.fill_null(0)",
    "dropna": "frame.filter('text IS NOT NULL')",
    "shape size": "frame.count(), len(frame.columns)",
    "dtypes info": "frame.schema()",
    "to_csv": "frame.write_csv('rows.csv', with_header=True)",
    "to_parquet": "frame.write_parquet('rows.parquet')",
    "to_json": "frame.write_json('rows.json')",
    "to_dict": "frame.to_pydict(), frame.to_pylist()",
    "to_arrow": "frame.to_arrow_table()",
    "run execute": "frame.show(), frame.to_pandas(), frame.to_arrow_table()",
}
_AFTER_A_RUN = frozenset(
    "apply at iat iloc items iterrows itertuples loc map mean pivot plot sample sum to_excel "
    "to_html transform values isna isnull nunique corr".split()
)


def missing(name: str, columns: Collection[str], known: Collection[str]) -> str:
    """The message of an AttributeError for ``name``. ``known``: the names that frames have."""
    message = f"a frame has no attribute '{name}'"
    form = remedy_for(name, _FORMS)
    if name in columns:
        remedy = f"The column is frame['{name}'] as a frame, col('{name}') in an expression."
    elif form is not None:
        remedy = f"Write {form}."
    elif name in _AFTER_A_RUN:
        remedy = f"{_PANDAS}."
    else:
        near = close_matches(name, known)
        remedy = near if near.startswith("Did") else f"If pandas has it, {_PANDAS}."
    return f"{message}\nHint: {remedy}"
