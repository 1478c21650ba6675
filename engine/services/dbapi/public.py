"""The public name of the service: ``bf.dbapi``."""

from blendfusion.services.dbapi import module as dbapi

__all__ = ["dbapi"]
