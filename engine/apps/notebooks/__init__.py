"""Notebooks: ``df.llm`` of pandas and Polars, and the cell magic ``%%blendfusion``."""

from blendfusion.services import Service

SERVICE = Service(
    names={"add_accessors": "accessors", "load_ipython_extension": "magic", "sql": "accessors"},
    begin="frame_namespace:add_namespaces",
)
