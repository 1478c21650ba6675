"""Python's DB-API 2.0: ``blendfusion.dbapi`` is the module of the service
``blendfusion/services/dbapi``."""

from __future__ import annotations

import sys
from typing import NoReturn

from blendfusion.services import offers

_found = offers("names").get("dbapi")
if _found is not None:
    sys.modules[__name__] = _found().dbapi


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"'{name}' belongs to the service blendfusion/services/dbapi, which is not installed"
    )
