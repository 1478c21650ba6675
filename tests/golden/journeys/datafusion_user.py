"""A program with a DataFusion context of its own, which gets functions that ask a model."""

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext, col, udf

import blendfusion as bf

context = SessionContext()
context.register_csv("reviews", "reviews.csv")
context.register_udf(udf(pc.utf8_upper, [pa.string()], pa.string(), "stable", "shout"))

session = bf.connect(ctx=context)
complaints = session.table("reviews").filter(bf.llm_filter("Is it a complaint?", "text"))
print(complaints.select("id", "product").sort(col("id")).to_pylist())
frame = session.sql(
    "SELECT shout(product) AS p, count(*) AS n FROM reviews"
    " WHERE stars < 3 AND llm_filter('Is it a complaint?', text) GROUP BY 1 ORDER BY 1"
)
print(frame.estimate().total.values, "values are expected")
print(frame.explain_text(estimates=False))
print(frame.to_pandas())
print(frame.trace.usage.values, "asked,", frame.trace.usage.cached, "from the cache")
frame.write_parquet("complaints.parquet")
print(context.read_parquet("complaints.parquet").to_pydict())
