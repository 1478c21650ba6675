"""Search over tables: full-text and vector indexes in Lance, on disk."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.scans",),
    session="session:Searching",
    names={"IndexReport": "build"},
    relations={"llm_search": "sources:rewrite_searches"},
)
