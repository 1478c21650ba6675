"""A server of the Model Context Protocol: agents query a session within a budget."""

from blendfusion.services import Service

SERVICE = Service()
