"""Tables whose scans run in Python: those of Lance here, those of databases, lakes, indexes and
documents in their services."""

from blendfusion.services import Service

SERVICE = Service(session="session:DatasetReading", formats={"lance": "lance_table"})
