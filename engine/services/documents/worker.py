"""The process that reads files: it has limited memory, and ends itself when a step takes too long.
Computing is bounded in seconds of the processor, so that what can be read does not depend
on the load of the machine.

It is started without the rest of the package (``process.py``), gets one line of JSON for each file,
and answers in lines of JSON: the number of pages, blocks of a page, a reason, the end. Nothing that
it writes is run by the reader of its answers.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import Any, TextIO

from blendfusion.services.documents.blocks import Block, Unreadable
from blendfusion.services.documents.letters import spell_out
from blendfusion.services.documents.parse import pages

_MOST_CHARACTERS = 64_000_000
"""The text of one file."""
_MOST_ERRORS = 20
"""The pages of one file that cannot be read, before the rest is not tried."""


def main(seconds: float, waiting: float, megabytes: int) -> None:
    """Read the files that are named on standard input, each step with ``seconds`` of the processor,
    within ``waiting`` seconds, in so much memory."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    _limit(megabytes)
    for line in sys.stdin:
        _File(answers, (seconds, waiting), json.loads(line)).read()


def _limit(megabytes: int) -> None:
    """Limits of this process: memory, and no file is written."""
    try:
        import resource
    except ImportError:  # Windows
        return
    size = megabytes << 20
    for what, limit in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (limit, limit))


class _File:
    """The reading of one file."""

    def __init__(
        self, answers: TextIO, seconds: tuple[float, float], request: dict[str, Any]
    ) -> None:
        self._answers = answers
        self._seconds = seconds
        self._request = request

    def read(self) -> None:
        try:
            self._arm()
            self._read()
        except Unreadable as problem:
            self._say(reason=str(problem))
        except MemoryError:
            self._say(reason="it needs more memory than is allowed")
        except RecursionError:
            self._say(reason="it is nested too deeply")
        except ImportError as problem:
            name = problem.name or str(problem)
            self._say(reason=f"it needs {name}: pip install 'blendfusion[documents,ocr]'")
        except Exception as problem:  # whatever a library raises for a damaged file
            line = f"{type(problem).__name__}: {problem}".split("\n")[0][:200]
            self._say(reason=f"it is damaged ({line})")
        self._say(end=True)
        self._disarm()

    def _read(self) -> None:
        characters = errors = 0
        for page, found in pages(self._request["path"], self._request["ocr"], self._ask_pages):
            if isinstance(found, str):
                errors += 1
                self._say(page=page, reason=found)
                if errors == _MOST_ERRORS:
                    raise Unreadable("so many of its pages are damaged that the rest is not read")
                continue
            characters += sum(len(block.text) for block in found)
            if characters > _MOST_CHARACTERS:
                raise Unreadable(f"its text has more than {_MOST_CHARACTERS:,} characters")
            self._say(page=page, blocks=[_row(block) for block in found])

    def _ask_pages(self, count: int) -> Collection[int] | None:
        if not self._request["asks"]:
            return None
        self._say(count=count)
        self._disarm()
        wanted = json.loads(sys.stdin.readline())
        self._arm()
        return None if wanted is None else frozenset(wanted)

    def _arm(self) -> None:
        """The system ends this process where a step takes too long, whatever code it is in."""
        self._end_after(*self._seconds)

    def _disarm(self) -> None:
        """To wait for the reader, which may take its time, is no step."""
        self._end_after(0, 0)

    def _end_after(self, seconds: float, waiting: float) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.setitimer(signal.ITIMER_REAL, waiting)

    def _say(self, **answer: Any) -> None:
        self._disarm()
        json.dump(answer, self._answers, ensure_ascii=True)
        self._answers.write("\n")
        self._answers.flush()
        self._arm()


def _row(block: Block) -> list[Any]:
    box = None if block.box is None else [round(value, 2) for value in block.box]
    return [block.kind, spell_out(block.text), box]
