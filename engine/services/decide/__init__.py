"""Several questions about one text, whose answers are one struct."""

from blendfusion.services import Service

SERVICE = Service(names={"decide": "expr"})
