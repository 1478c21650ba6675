"""UPDATE and DELETE of some rows: a query finds them, and their new values."""

from blendfusion.services import Service

SERVICE = Service(updates="carry_out:with_changes")
