"""A script as users write one, which type checkers read (it is never run)."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa

import blendfusion as bf


@bf.ingredient
def shout(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
    """Louder."""
    return model.ask("Louder", text)


@bf.ingredient(returns=pa.int64())
def length(model: bf.UserModel, text: pa.StringArray, unit: str = "letters") -> pa.Int64Array:
    return pa.array([len(str(t)) for t in text], pa.int64())


def answer(request: bf.Request) -> bool:
    return "good" in str(request.values[0])


def main() -> None:
    print(bf.__version__)
    session = bf.connect(bf.ScriptedModel(answer), cache=None, concurrency=4)
    reviews: bf.Frame = session.from_pydict({"x": ["good", "bad"], "n": [1, 2]}, name="reviews")
    chosen = reviews.filter(bf.llm_filter("Is it good?", bf.col("x"))).select("x", "n").limit(3)
    print(chosen.estimate(), chosen.trace)
    loud = reviews.select(shout(bf.col("x")), length(bf.col("x"), unit="words"))
    print(loud.to_pylist(), loud.trace.usage.values)
    found = session.sql("SELECT x, n FROM reviews WHERE llm_filter('q', x)")
    rows: list[dict[str, object]] = found.to_pylist()
    table: pa.Table = found.to_arrow_table()
    frame: pd.DataFrame = found.to_pandas()
    polars: pl.DataFrame = found.to_polars()
    print(rows, table.num_rows, len(frame), polars.height)
    sorted_rows = session.table("reviews").sort(bf.col("n").sort()).limit(3).trace
    joined = reviews.join(found, on="x").with_column("m", bf.col("n") + bf.lit(1)).explain_text()
    counted = reviews.aggregate([bf.col("x")], []).distinct().estimate()
    print(sorted_rows, joined, counted)
    for part in (reviews.union(reviews), reviews.drop("n"), reviews.head(1), reviews[["x", "n"]]):
        print(part.trace.usage.calls, part.explain_text())
    session.from_pandas(frame, name="p").sort("n").estimate()
    session.from_polars(polars, name="l").with_column_renamed("x", "y").estimate()
    csv = session.read_csv("reviews.csv")
    print(csv.trace, session.read_parquet("reviews.parquet").estimate())
    documents = session.read_documents("reports", chunk=400)
    print(documents.limit(1).to_pylist(), session.from_arrow(table).estimate())
    session.close()


if __name__ == "__main__":
    main()
