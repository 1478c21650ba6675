"""The part of a session that keeps the book of usage."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from blendfusion.budget import Budget
from blendfusion.errors import CacheWarning, ExecutionError, OptionError, by_surface
from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.run.reports.trace import Trace
    from blendfusion.services.usage.book import UsageBook
    from blendfusion.services.usage.daily_limits import SharedLimits


class Accounting(FrameSources):
    """A session whose runs are entered in a book."""

    @cached_property
    def usage_book(self) -> UsageBook:
        """The book where answers are stored: beside their file, or in their PostgreSQL; one in
        memory for others."""
        from blendfusion.models.stores.sqlite import SqliteStore
        from blendfusion.services.usage.book import UsageBook

        store = self._store
        url = getattr(store, "database_url", None)
        if url is not None:
            from blendfusion.services.usage.postgres_book import PostgresBook

            return PostgresBook(url)
        path = store.path if type(store) is SqliteStore else None
        return UsageBook(None if path is None else path.with_name(f"{path.stem}.usage.sqlite"))

    @property
    def user(self) -> str:
        """The user whose spending this is: that of the budget, else that of the process."""
        named: str | None = self.__dict__.get("user_name") or self.ledger.budget.user
        if named is not None:
            return named
        import getpass

        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a process whose number has no name
            return ""

    @user.setter
    def user(self, name: str) -> None:
        self.__dict__["user_name"] = name

    def daily_limits(self, budget: Budget) -> SharedLimits | None:
        """The limits of a budget over days. Raises OptionError without a file that keeps them."""
        if budget.days is None:
            return None
        if not self.usage_book.is_shared:
            raise OptionError(
                "a budget over days is kept where answers are stored, in a file or in PostgreSQL, and "
                "this session stores none there",
                hint=by_surface(
                    "bf.connect(cache='answers.sqlite', budget=…).",
                    "--cache answers.sqlite names a file for it.",
                ),
            )
        from blendfusion.services.usage.daily_limits import SharedLimits

        return SharedLimits(self.usage_book, budget, self.user)

    def note_usage(self, trace: Trace) -> None:
        """Enter a run in the book of usage. Warns if the book cannot be written."""
        super().note_usage(trace)
        used = trace.usage
        if not used.values + used.cached + used.calls:
            return
        hides, counted = self.options.show_values == "off", self.ledger.daily is not None
        from blendfusion.services.usage.book import enter_run

        try:
            enter_run(self.usage_book, self.user, trace, hides=hides, counted=counted)
        except ExecutionError as problem:
            if isinstance(problem.__cause__, OSError):  # the store has warned of such a folder
                self.usage_book.path = None
                return
            import warnings

            warnings.warn(f"{problem}; usage is not entered", CacheWarning, stacklevel=2)

    def release(self) -> None:
        """Close the book until the next run."""
        super().release()
        if "usage_book" in self.__dict__:
            self.usage_book.close()
