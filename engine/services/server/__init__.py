"""A server of Arrow Flight SQL: ADBC, JDBC and ODBC drivers query a session."""

from blendfusion.services import Service

SERVICE = Service(needs=("services.dbapi",))
