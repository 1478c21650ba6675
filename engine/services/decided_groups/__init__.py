"""Asks about the rows of groups until no answer changes what is read of them."""

from blendfusion.services import Service

SERVICE = Service(decided_groups="decided_groups:rows_of_decided_groups")
