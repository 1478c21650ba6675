"""Checks whether answers depend on what is asked beside them."""

from blendfusion.services import Service

SERVICE = Service(frame="frame:Checking", names={"Independence": "check"})
