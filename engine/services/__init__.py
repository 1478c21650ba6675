"""Optional parts of sessions: each folder can be taken out, and the rest works without it.

A folder here, or under ``apps/``, is a service. Its ``__init__`` declares as ``SERVICE`` what it
adds, and the core finds it by listing the folders: it imports no service by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The declaration of one folder, by names of the form ``module:name`` below it. A module is
    imported when what it adds is first used."""

    needs: tuple[str, ...] = ()
    """The packages of other services that it needs, by their names below ``blendfusion``."""
    session: str = ""
    """The class whose methods sessions have: no state of its own but cached properties."""
    frame: str = ""
    """The class whose methods frames have."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The modules of its public names, ``bf.<name>``."""
    relations: Mapping[str, str] = field(default_factory=dict)
    """Its functions in FROM, and the rewriting of a text that has one: ``rewrite(sql, session,
    parameters, columns, read_only=…)`` returns SQL for DataFusion."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Its tables of ``information_schema`` (``usage``: of ``blendfusion``): functions of a session
    and of the ingredients by name that return Arrow tables."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """The modules of its kinds of files: ``register(catalog, name, listing, sheet)`` makes a table
    of some."""
    prices: Mapping[str, str] = field(default_factory=dict)
    """Its lists of prices: functions that return prices by the names of models."""
    statements: Mapping[str, str] = field(default_factory=dict)
    """The statements that it carries out, by their first words, in capital letters: ``run(session,
    sql)`` returns a frame. A read-only query has none of them."""
    destinations: str = ""
    """The module that writes to tables of its own: ``write_rows(session, query)`` is the frame of
    an INSERT or CREATE TABLE … AS, ``write_frame(frame, name, mode, key)`` a report, and
    ``table_exists(session, name)`` says so; each is None for another table. ``drop_table(session,
    name)`` deletes one."""
    dialects: str = ""
    """The module that translates the queries of other systems: see ``prepare.translators``."""
    remedies: str = ""
    """The module of what to write here for what other systems have: ``FORMS`` (a pattern of
    DataFusion's message, ours, the hint), and ``function_remedy(name, query)``."""
    subqueries: str = ""
    """The module of subqueries that give calls their options, examples and samples:
    ``frames_of(engine, task, known)``, and ``settled_task(task, frames, dispatcher)``."""
    dialect_names: tuple[str, ...] = ()
    """The names of these systems."""
    versions: str = ""
    """The function that reads earlier versions of tables: ``with_versions(session, sql)`` is the
    text, of the same length, with parameters in their places, and the frames of these."""
    external_tables: str = ""
    """The module of CREATE EXTERNAL TABLE: ``external_table(session, sql)`` returns SQL for
    DataFusion, and ``hide_statistics(session, sql)`` changes the table that this made."""
    updates: str = ""
    """The function that changes some rows of a table: ``with_changes(session, query, frame, asks)``
    is the frame of an UPDATE or DELETE."""
    letter_case: str = ""
    """The module that finds names in another letter case: ``respell_query(session, text, hidden)``
    and, for verbs of frames, ``respells_first(verb)``, ``respell_verb(verb)``, ``respell_text(plan,
    text)`` and ``respell_columns(frame, names)``."""
    short_forms: str = ""
    """The function that writes out its short forms of queries: ``spell_out(session, sql)`` returns
    SQL, which is ``sql`` where that has none."""
    columns: str = ""
    """The function that adds columns of answers to its tables: ``table_of(session, name)`` is a
    ``files.answer_columns.AnsweredTable``; None for another table."""
    workers: str = ""
    """The function that gives ``connect(cluster=…)`` its workers."""
    pages: str = ""
    """The module of the pages of runs: ``page_of(trace, redaction)`` and ``fragment_of(trace)``."""
    function: str = ""
    """The function of SQL that each session has of it: ``make()`` is a function of DataFusion's."""
    estimates: str = ""
    """The function that estimates the questions of a frame: ``estimate_frame(frame)``."""
    decided_groups: str = ""
    """The function that runs a block whose groups are asked about until they are decided:
    ``rows(block, table, rowwise, survivors, counts)``. Without it, the rule ``undecided_groups`` is
    off."""
    seconds: str = ""
    """The class that expects the seconds of a run: see ``throughput.TimeLeft``."""
    begin: str = ""
    """A function that runs when ``blendfusion`` is imported."""


PACKAGES = ("blendfusion.services", "blendfusion.apps")
METHODS: Mapping[str, str] = {
    "approximate": "approximately bounds",
    "ask": "answer ask chat layer register_layer templates",
    "dialects": "enums register_enum translated",
    "documents": "documents read_documents register_documents",
    "evaluate": "calibrate choose_model evaluate improve register_calibration register_question "
    "review",
    "independence": "check_independence",
    "lakes": "lake_version lakes register_lake",
    "meanings": "entities groups",
    "replay": "changes diff manifest",
    "search": "attach_lancedb index indexes open_index register_lance search",
    "sources": "attach detach",
    "usage": "usage_book user",
    "views": "materialized_views refresh_view",
}
"""The public attributes that services add to sessions and frames, for the error where a folder is
missing."""


@cache
def services_in(package: str) -> Mapping[str, Service]:
    """The services whose folders lie in a package, by their modules. A service that needs a missing
    one is missing, too."""
    found = {}
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        service = getattr(import_module(module.name), "SERVICE", None) if module.ispkg else None
        if service is not None and all(find_spec(f"blendfusion.{need}") for need in service.needs):
            found[module.name] = service
    return found


def services() -> Mapping[str, Service]:
    """The services of all packages, by their modules."""
    return {name: one for package in PACKAGES for name, one in services_in(package).items()}


@cache
def offers(field: str) -> Mapping[str, Callable[[], Any]]:
    """The entries of a mapping of all services, by name, as functions that import them."""
    return {
        name: partial(_import, module, reference)
        for module, service in services().items()
        for name, reference in getattr(service, field).items()
    }


def parts(field: str) -> list[Any]:
    """The values of a field of all services that have it, imported."""
    return [
        _import(module, getattr(service, field))
        for module, service in services().items()
        if getattr(service, field)
    ]


def begin() -> None:
    """Prepare the programs for people, when ``blendfusion`` is imported."""
    for module, service in services_in("blendfusion.apps").items():
        if service.begin:
            _import(module, service.begin)()


def missing_method(name: str) -> str | None:
    """The error for the attribute ``name`` of a service that is missing; None for any other."""
    for service, names in METHODS.items():
        if name in names.split() and f"blendfusion.services.{service}" not in services():
            return f"'{name}' belongs to the service blendfusion/services/{service}, which is not installed"
    return None


def _import(package: str, reference: str) -> Any:
    module, _, name = reference.partition(":")
    found = import_module(f"{package}.{module}")
    return getattr(found, name) if name else found
