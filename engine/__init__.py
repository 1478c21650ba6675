"""BlendFusion: language-model functions inside SQL and DataFrames, on Apache DataFusion.

Importing it takes no time: the public names are imported when the first of them is used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from blendfusion.public_names import all_names, public
from blendfusion.services import begin

if TYPE_CHECKING:
    from blendfusion import public_names
    from blendfusion.public_names import *  # noqa: F403
    from blendfusion.services import names as service_names
    from blendfusion.services.names import *  # noqa: F403
    from blendfusion.udfs.register import python_functions
    from blendfusion.udfs.register.python_functions import *  # noqa: F403

    __version__: str

    __all__: list[str] = []
    __all__ += public_names.__all__
    __all__ += service_names.__all__
    __all__ += python_functions.__all__  # mypy does not follow the same line of public_names
else:

    def __getattr__(name):
        if name == "__all__":
            return all_names()
        if name == "__version__":
            from importlib.metadata import version

            return version(__name__)
        if not name.startswith("_"):
            found = public(name)
            if found is not None or name in globals():  # a module that was imported now
                return globals().get(name) if found is None else found
        module = sys.modules[__name__]
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name, obj=module
        )


def __dir__() -> list[str]:
    return sorted(all_names())


begin()
