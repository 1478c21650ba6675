"""BlendSQL's side of bench_server_queries.py: runs in an environment of its own.

It is given the URL of a server, a Parquet file of notes and one of products, and then a query a
line; it prints a line for each: the rows, or the error."""

from __future__ import annotations

import json
import sys

import pandas as pd
from blendsql import BlendSQL
from blendsql.models import VLLM


def main() -> None:
    url, notes, products = sys.argv[1:]
    tables = {"notes": pd.read_parquet(notes), "products": pd.read_parquet(products)}
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            # Each execution has an event loop of its own, which its client does not survive.
            blendsql = BlendSQL(tables, model=VLLM("tiny", base_url=url))
            found = blendsql.execute(json.loads(line)).df()
            said = {"rows": [list(map(str, row)) for row in found.itertuples(index=False)]}
        except Exception as problem:
            said = {"error": f"{type(problem).__name__}: {problem}"}
        print("answers " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
