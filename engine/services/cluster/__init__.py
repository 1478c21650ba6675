"""Many machines: workers run parts of scans, own ranges of distinct values and hold models."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("models.services.shared_stores", "services.scans"),
    session="session:Clustering",
    workers="cluster:cluster_of",
)
