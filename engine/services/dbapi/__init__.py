"""Python's DB-API 2.0 over a session, and the dialect of SQLAlchemy on it."""

from blendfusion.services import Service

SERVICE = Service(names={"dbapi": "public"})
