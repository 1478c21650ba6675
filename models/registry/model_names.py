"""The models of a session: its own, and those that calls name.

A query opens no file of weights and calls no server that the program did not name: it may name the
session's own models, registered ones, and packaged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from blendfusion.errors import ModelNotFound, OptionError, by_surface, close_matches
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.load import load, packaged_names
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.stores.recording import KeyedStore, Recording
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.models.wrappers.cascade import targets_in
from blendfusion.models.wrappers.failover import Models, check_levels, each_of, together
from blendfusion.options import Options


def model_for(spec: Models, options: Options, store: AnswerStore) -> CachedModel:
    """The model that ``spec`` names, its answers in ``store``; of several, each is asked what those
    before it fail at, or, where the options promise something of them, they are a cascade. Raises
    ``ModelNotFound`` if one of them cannot be had, OptionError for a promise of one model alone;
    loads no weights."""
    named, targets = each_of(spec), targets_in(options)
    check_levels(len(named), targets)
    return together([CachedModel(load(one, options), store) for one in named], targets)


class ModelNames(NamedTuple):
    """The models that a call names, in the order in which they are asked."""

    names: tuple[str, ...] = ()
    """(): those of the session."""
    targets: Targets | None = None
    """The targets of a cascade; None: each gets the values at which those before it
    fail."""


class NamedModels:
    """The models of one session, each loaded once, with its stored answers."""

    def __init__(
        self,
        spec: Models,
        store: AnswerStore,
        pooled: Callable[[object, Model, Options], Model] = lambda spec, model, options: model,
    ) -> None:
        self._spec = spec
        self._store = store
        self._pooled = pooled
        """The model that answers in the place of a loaded one, such as its like in a cluster."""
        self._registered: dict[str, str | Model] = {}
        self._own: CachedModel | None = None
        self._parts: list[CachedModel] = []
        """The session's own models, one by one."""
        self._named: dict[str, CachedModel] = {}
        self._together: dict[ModelNames, CachedModel] = {}
        self._store_of: Callable[[CachedModel], AnswerStore] | None = None
        self._moved: list[tuple[CachedModel, AnswerStore]] = []
        """The models whose store a context replaced, with their own."""

    @property
    def own_names(self) -> tuple[str, ...]:
        """The session's own models, in the order in which they are asked; () as long as they were
        not looked up."""
        return () if self._own is None else self._own.names

    def own(self, options: Options) -> CachedModel:
        """The session's own models as one. Raises as ``model_for``."""
        if self._own is None:
            specs, targets = each_of(self._spec), targets_in(options)
            check_levels(len(specs), targets)
            self._parts = [self._make(spec, options) for spec in specs]
            self._own = together(self._parts, targets)
        return self._own

    def register(self, name: str, model: str | Model, options: Options) -> None:
        """Register ``model`` as ``name``; replaces an earlier model of that name. Raises
        ModelNotFound for a model that cannot be loaded, OptionError for a blank name."""
        if not isinstance(name, str) or not name.strip():
            raise OptionError(f"{name!r} is no name of a model", hint="Write 'large', say.")
        made = self._make(model, options)
        if name in self._named:
            self._named[name].close()
        self._named[name], self._registered[name] = made, model
        self._together = {of: made for of, made in self._together.items() if name not in of.names}

    def of(self, wanted: ModelNames, options: Options) -> CachedModel:
        """The models that are ``wanted``, as one. Raises ModelNotFound for a name that is not
        known, OptionError for a promise of one model."""
        if not wanted.names:
            return self.own(options)
        made = self._together.get(wanted)
        if made is None:
            check_levels(len(wanted.names), wanted.targets)
            parts = [self._one(name, options) for name in wanted.names]
            made = self._together[wanted] = together(parts, wanted.targets)
        return made

    def _one(self, name: str, options: Options) -> CachedModel:
        known = self._named.get(name)
        if known is not None:
            return known
        spec = self._registered.get(name)
        if spec is None:
            own = self._own_one(name, options)
            if own is not None:
                return own
            if name not in packaged_names():
                raise self._unknown_model(name)
            spec = name
        self._named[name] = self._make(spec, options)
        return self._named[name]

    def _make(self, spec: str | Model | None, options: Options) -> CachedModel:
        made = CachedModel(self._pooled(spec, load(spec, options), options), self._store)
        self._move(made)
        return made

    def _own_one(self, name: str, options: Options) -> CachedModel | None:
        """The one of the session's own models that was named so, or is called so."""
        with suppress(ModelNotFound):  # a session may do without a model of its own
            self.own(options)
        named = zip(each_of(self._spec), self._parts, strict=False)
        given = next((part for spec, part in named if spec == name), None)
        return given or next((part for part in self._parts if part.name == name), None)

    def _unknown_model(self, name: str) -> ModelNotFound:
        known = {*self._registered, *(part.name for part in self._parts), *packaged_names()}
        return ModelNotFound(
            f"the session knows no model '{name}'",
            hint=f"{close_matches(name, known)} "
            + by_surface(
                f"Make it known: session.register_model('{name}', 'openai:…').",
                "Name it with --model.",
            ),
        )

    def _all(self) -> Iterator[CachedModel]:
        if self._own is not None:
            yield self._own
        yield from self._named.values()

    @contextmanager
    def record_answers(self, noted: KeyedStore, tokens: dict[str, int]) -> Iterator[None]:
        """Within this context, ``noted`` gets the answers of all models, and ``tokens`` the lengths
        of texts by their digests."""
        with self.answering_from(lambda part: Recording(part.store, noted, tokens)):
            yield

    @contextmanager
    def answering_from(self, store_of: Callable[[CachedModel], AnswerStore]) -> Iterator[None]:
        """Within this context, each model answers from the store that ``store_of`` gives it, also
        one that is first named there."""
        before, self._store_of = self._store_of, store_of
        all_models = (*self._all(), *self._parts, *self._together.values())
        parts = {id(part): part for model in all_models for part in model.parts}
        self._moved, moved_before = [], self._moved
        try:
            for part in parts.values():
                self._move(part)
            yield
        finally:
            for part, store in reversed(self._moved):
                part.store = store
            self._moved, self._store_of = moved_before, before

    def _move(self, part: CachedModel) -> None:
        """Have a model answer from the store of the current context."""
        if self._store_of is not None:
            self._moved.append((part, part.store))
            part.store = self._store_of(part)

    @property
    def own_and_named(self) -> tuple[tuple[CachedModel, ...], dict[str, CachedModel]]:
        """The session's own models in order, and those of calls by name."""
        return tuple(self._parts), dict(self._named)

    def forget(self) -> None:
        """Forget the stored answers of all of them."""
        for model in self._all():
            model.forget()

    def close(self) -> None:
        """Free them all; they load again when they are asked. May be called twice."""
        for model in self._all():
            model.close()

    def reload(self) -> None:
        """Free the models. The next request to one loads it again, with the options of that
        time."""
        self.close()
        self._own, self._parts, self._named, self._together = None, [], {}, {}
