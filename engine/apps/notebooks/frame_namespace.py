"""Adds ``llm`` to the frames of pandas and Polars, without importing either or anything else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def add_namespaces() -> None:
    """Add ``llm`` to the frames of what is imported, and of the others when they are imported."""
    for name in _ADDED:
        if name in sys.modules:
            _add(name)
    if not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


def _add(name: str) -> None:
    library = sys.modules[name]
    if not hasattr(getattr(library, "DataFrame", object), "llm"):
        _ADDED[name](library)


def _add_to_pandas(pandas: Any) -> None:
    pandas.api.extensions.register_dataframe_accessor("llm")(_of_pandas)


def _add_to_polars(polars: Any) -> None:
    polars.api.register_dataframe_namespace("llm")(_of_polars)
    polars.api.register_lazyframe_namespace("llm")(_of_polars)


_ADDED: dict[str, Callable[[Any], None]] = {"pandas": _add_to_pandas, "polars": _add_to_polars}


def _of_pandas(data: Any) -> Any:
    from blendfusion.apps.notebooks.accessors import PandasAccessor

    return PandasAccessor(data)


def _of_polars(data: Any) -> Any:
    from blendfusion.apps.notebooks.accessors import PolarsAccessor

    return PolarsAccessor(data)


class _AfterImport(MetaPathFinder):
    """Finds what the other finders find; once pandas or Polars is imported, its frames get
    ``llm``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _ADDED:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                _add_after(spec)
                return spec
        return None


def _add_after(spec: ModuleSpec) -> None:
    """Let the loader of ``spec`` add ``llm`` as its last step."""
    loader = spec.loader
    if loader is None:
        return
    execute = loader.exec_module

    def execute_and_add(module: ModuleType) -> None:
        execute(module)
        _add(spec.name)

    setattr(loader, "exec_module", execute_and_add)  # noqa: B010 - for mypy, a method
