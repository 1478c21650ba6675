"""Tables of Delta Lake and Iceberg, as their logs say which rows count."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.scans",),
    session="session:LakeReading",
    versions="versions:with_versions",
    columns="columns:table_of",
)
