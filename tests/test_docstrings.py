"""Docstrings: every public name has one, and the examples in them run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
from types import ModuleType

import pytest

import blendfusion as bf


def modules() -> list[str]:
    """The names of our Python modules; compiled ones describe themselves in their ``.pyi``."""
    found = [module.name for module in pkgutil.walk_packages(bf.__path__, prefix="blendfusion.")]
    return [name for name in ("blendfusion", *sorted(found)) if _is_python(name)]


def _is_python(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and (spec.origin or "").endswith(".py")


@pytest.mark.parametrize("name", bf.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    assert (inspect.getdoc(getattr(bf, name)) or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", modules())
def test_a_module_says_what_it_owns(name: str) -> None:
    assert (importlib.import_module(name).__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    known = {"bf": bf} | {n: getattr(bf, n) for n in bf.__all__}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(module, extraglobs=known):
        if test.examples:  # a run forgets the lines of every file, whatever there is to run
            runner.run(test)
    assert runner.failures == 0
