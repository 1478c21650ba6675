"""XLSX files: a sheet as a table, and a table as a sheet."""

from blendfusion.services import Service

SERVICE = Service(formats={"xlsx": "sheets"})
