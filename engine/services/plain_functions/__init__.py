"""The functions in a context of DataFusion's own, which is no session."""

from blendfusion.services import Service

SERVICE = Service(names={"register": "register"})
