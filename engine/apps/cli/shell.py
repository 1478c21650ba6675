"""The shell: statements typed one after the other over one session, or read from a script."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console

import blendfusion as bf
from blendfusion.apps.cli.results import (
    Format,
    check_output,
    format_for,
    is_plan,
    page_of,
    write,
)
from blendfusion.apps.cli.screens import SCREEN_ROWS, Rows, Screens, first_screen
from blendfusion.apps.cli.sessions import add_session, budget_of, interruption, session_of
from blendfusion.apps.cli.termination import Termination
from blendfusion.apps.cli.typed_text import edit_text, pointed_at
from blendfusion.apps.scripts import has_open_quote, script, split
from blendfusion.errors import (
    BlendFusionError,
    QueryError,
    close_matches,
    fit_terminal,
    given_names,
)
from blendfusion.files.reading import register_spec
from blendfusion.models.protocol.python_packages import cache_folder
from blendfusion.redaction import printable
from blendfusion.run.observe.progress import count_noun, spending_line
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from blendfusion.services.ask.conversation import Chat

WELCOME = """\
BlendFusion: SQL with language-model functions. End a statement with a semicolon.
\\? lists the commands, \\q leaves."""
_MORE = "\\more shows them, \\o FILE keeps all"
_MODES: tuple[Format, ...] = ("table", "csv", "tsv", "json", "markdown", "html", "line")
PROMPT, CONTINUED = "blendfusion> ", "        ...> "
_QUOTED = "      quote> "


def add_arguments(shell: argparse.ArgumentParser) -> None:
    """Add the arguments of ``shell``."""
    shell.set_defaults(run=run_shell)
    shell.add_argument(
        "-f", "--file", type=Path, metavar="SCRIPT", help="run the statements of a file and leave"
    )
    add_session(shell)


def run_shell(arguments: argparse.Namespace) -> int:
    """Run a script, statements from standard input, or the prompt on a terminal."""
    with session_of(arguments) as session:
        shell = Shell(
            session, arguments.dialect, budget_of(arguments, session), arguments.full_cells
        )
        if arguments.file is not None:
            return shell.run_script(_read(arguments.file), str(arguments.file))
        if not sys.stdin.isatty():
            return shell.run_script(sys.stdin.read(), "standard input")
        shell.interactive = True
        return _prompt(shell)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise QueryError(f"cannot read '{path}': {reason}") from problem


@dataclass
class Shell:
    """Runs the statements that a user types in one session. ``interactive``: results are paged, and
    the spending of a statement is shown."""

    session: bf.Session
    dialect: str | None = None
    budget: bf.Budget | None = None
    full_cells: bool = False
    timing: bool = False
    interactive: bool = False
    output: Path | None = None
    """The file that the next result goes to."""
    chat: Chat | None = None
    """The conversation since the last ``\\ask``."""
    last: bf.Frame | None = None
    """The frame of the last query."""
    mode: Format = "table"
    """How results are written that go to no file."""
    screens: Screens | None = None
    """The rows of the last query, and how many of them were shown."""
    typed: str = ""
    """The last text that was run: ``\\e`` opens it."""
    draft: str = ""
    """The text that the next prompt begins with."""
    done: bool = False

    def run_script(self, text: str, source: str) -> int:
        """Run every statement and command of a script; the first error ends it, with its line."""
        line = 1
        for part in _parts(text):
            try:
                if part.startswith("\\"):
                    self.run(part)
                else:
                    for statement in script(part):
                        place = line + statement.line - 1
                        self.run(statement.text)
            except BlendFusionError as error:
                where = line if part.startswith("\\") else place
                error.reword(f"{source}, line {where}: {error.message}", error.hint)
                raise
            line += part.count("\n") + 1
            if self.done:
                break
        return 0

    def run(self, text: str) -> None:
        """Run one statement, or one command that begins with a backslash. Raises
        BlendFusionError."""
        text = text.strip()
        text = WORDS.get(text.rstrip("; ").lower(), text)
        if text.startswith("."):
            if f"\\{text[1:].split(' ')[0]}" not in COMMANDS:
                raise QueryError(
                    f"no command {text.split()[0]}",
                    hint="Commands begin with a backslash: \\? lists them.",
                )
            text = f"\\{text[1:]}"
        if text.startswith("\\"):
            name, _, rest = text.partition(" ")
            command = COMMANDS.get(name)
            if command is None:
                raise QueryError(f"no command {name}", hint=close_matches(name, COMMANDS))
            command.run(self, rest.strip().rstrip(";"))
        elif text:
            self.typed = text
            with pointed_at(text):
                self.query(text)

    def query(self, text: str) -> None:
        """Run one query and show its result."""
        start = time.perf_counter()
        frame = self.frame(text)
        check_output(format_for(self.output), self.output)
        self.last = frame  # also where it fails or is interrupted: \trace shows what was answered
        self.write(frame)
        if self.interactive and frame.trace.usage.values:
            print(spending_line(frame.trace.usage, frame.trace.cost, ""), file=sys.stderr)
        if self.timing:
            self.print(f"{time.perf_counter() - start:.3f} s")

    def write(self, rows: Rows) -> None:
        """Show the first rows, or write all of them in the shell's mode, or to the file that
        ``\\o`` named."""
        if self.output is not None:
            count = write(rows, format_for(self.output), self.output, full_cells=self.full_cells)
            if self.interactive:
                self.print(f"written: {self.output}, {count_noun(count, 'row')}")
        elif self.mode != "table" or not self.interactive:
            style = format_for(None) if self.mode == "table" else self.mode
            write(rows, style, None, full_cells=self.full_cells)
        elif is_plan(rows):
            self.show(page_of(rows.to_arrow_table() if isinstance(rows, bf.Frame) else rows))
        else:
            self._write_screen(rows)
        self.output = None

    def _write_screen(self, rows: Rows) -> None:
        """Show the first rows as soon as they are there; a page that is higher than the screen
        waits for the others."""
        height = Console().height
        long: list[str] = []

        def show(part: pa.Table) -> None:
            page = page_of(part, full_cells=self.full_cells, last="")
            if page.count("\n") >= height:
                long.append(page)
            else:
                print(page, end="", flush=True)

        self.screens = first_screen(rows, self.screen_rows, show)
        self.show("".join(long) + self.screens.following(_MORE))

    @property
    def screen_rows(self) -> int:
        """Rows of a table that the screen holds, with its head and what stands below it."""
        return max(5, min(SCREEN_ROWS, Console().height - 6))

    def show_more(self, *, all_of_them: bool) -> None:
        """Show the next rows of the last query."""
        screens = self.screens
        if screens is None or screens.shown == len(screens.held):
            raise QueryError("no more rows are held", hint="\\o FILE, then the query, writes all.")
        most = len(screens.held) if all_of_them else self.screen_rows
        part, first = screens.next(most), screens.shown
        page = page_of(part, full_cells=self.full_cells, last="")
        done = screens.whole and screens.shown == len(screens.held)
        last = f"rows {first - len(part) + 1:,} to {first:,}"
        self.show(page + (last if done else f"{last}; {screens.following(_MORE)}"))

    def frame(self, text: str) -> bf.Frame:
        return self.session.sql(text, budget=self.budget, dialect=self.dialect)

    def print(self, text: str) -> None:
        """Print a text; long lines of an interactive shell are broken between words."""
        if self.interactive:
            Console(highlight=False, markup=False).print(printable(text))
        else:
            print(printable(text))

    def show(self, text: str) -> None:
        """Print a text, through a pager if it is longer than the screen."""
        console = Console()
        if self.interactive and text.count("\n") >= console.height:
            os.environ.setdefault("LESS", "-FRSX")
            with console.pager():
                console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, end="" if text.endswith("\n") else "\n")


# --- commands -----------------------------------------------------------------------------------


def _tables(shell: Shell, argument: str) -> None:
    if argument:
        shell.query(f"DESCRIBE {argument}")
    else:
        names = given_names(shell.session.catalog().schema().names())
        shell.print("\n".join(names) or "No tables. \\table PATH opens a file.")


def _functions(shell: Shell, argument: str) -> None:
    for name, ingredient in sorted(known_ingredients().items()):
        if name.startswith(argument):
            shell.print(f"{name:16} {ingredient.summary}")


def _table(shell: Shell, argument: str) -> None:
    name = register_spec(shell.session, argument)
    shell.print(f"{name}: {', '.join(shell.session.table(name).schema().names)}")


def _explain(shell: Shell, argument: str) -> None:
    shell.show(shell.frame(_query(argument, "\\explain")).explain_text())


def _ask(shell: Shell, argument: str) -> None:
    if not argument:
        raise QueryError("\\ask needs a question", hint="\\ask Which reviews complain of delivery?")
    shell.chat = shell.session.chat(budget=shell.budget)
    shell.show(str(shell.chat.ask(argument)))


def _chat(shell: Shell, argument: str) -> None:
    if not argument:
        raise QueryError("\\chat needs a message", hint="\\chat Only those of this year.")
    if shell.chat is None:
        shell.chat = shell.session.chat(budget=shell.budget)
    shell.show(str(shell.chat.ask(argument)))


def _run(shell: Shell, argument: str) -> None:
    if shell.chat is None or shell.chat.draft is None:
        raise QueryError("nothing was asked yet", hint="\\ask Which reviews complain of delivery?")
    shell.write(shell.chat.run())
    shell.last = shell.chat.draft.frame
    shell.print(shell.chat.draft.searched)


def _analyze(shell: Shell, argument: str) -> None:
    frame = shell.frame(_query(argument, "\\analyze"))
    shell.show(frame.explain_text(analyze=True))
    shell.last = frame


def _estimate(shell: Shell, argument: str) -> None:
    shell.print(repr(shell.frame(_query(argument, "\\estimate")).estimate()))


def _query(argument: str, command: str) -> str:
    if not argument:
        raise QueryError(f"{command} needs a query", hint=f"Write {command} SELECT …;")
    return argument


TRACED = ("question", "values", "answer", "logprob", "error", "cached")
"""The columns of a trace that a screen has room for, where any row has them; a page has all."""


def _trace(shell: Shell, argument: str) -> None:
    if shell.last is None:
        raise QueryError("no query was run yet")
    if argument:
        shell.last.trace.to_html(argument)
        shell.print(f"written: {argument}")
    else:
        calls = shell.last.trace.calls
        if not calls.num_rows:
            raise QueryError("the last query asked nothing")
        shown = [
            name for name in TRACED if any(v not in (None, False) for v in calls[name].to_pylist())
        ]
        shell.show(page_of(calls.select(shown), full_cells=shell.full_cells))


def _timing(shell: Shell, argument: str) -> None:
    shell.timing = not shell.timing
    shell.print(f"timing is {'on' if shell.timing else 'off'}")


def _mode(shell: Shell, argument: str) -> None:
    if argument:
        if argument not in _MODES:
            raise QueryError(f"no mode {argument!r}", hint=close_matches(argument, _MODES))
        shell.mode = next(mode for mode in _MODES if mode == argument)
    shell.print(f"mode: {shell.mode}; others: {', '.join(m for m in _MODES if m != shell.mode)}")


def _more(shell: Shell, argument: str) -> None:
    if argument not in ("", "all"):
        raise QueryError(f"\\more {argument}?", hint="\\more, or \\more all.")
    shell.show_more(all_of_them=argument == "all")


def _edit(shell: Shell, argument: str) -> None:
    if not shell.interactive:
        raise QueryError("\\e needs a terminal")
    shell.draft = edit_text(argument or (f"{shell.typed};" if shell.typed else ""))


def _forget(shell: Shell, argument: str) -> None:
    shell.draft = ""


def _full_cells(shell: Shell, argument: str) -> None:
    shell.full_cells = not shell.full_cells
    shell.print(f"cells are {'whole' if shell.full_cells else 'cut at 60 characters'}")


def _output(shell: Shell, argument: str) -> None:
    output = Path(argument).expanduser() if argument else None
    check_output(format_for(output), output)
    shell.output = output


def _script(shell: Shell, argument: str) -> None:
    shell.run_script(_read(Path(argument).expanduser()), argument)


def _dialect(shell: Shell, argument: str) -> None:
    if argument:
        shell.session.translated("SELECT 1", argument)  # raises OptionError for an unknown one
        shell.dialect = argument
    shell.print(f"dialect: {shell.dialect or 'sql, or blendsql for {{…}}'}")


def _help(shell: Shell, argument: str) -> None:
    for name, command in COMMANDS.items():
        shell.print(f"{name + ' ' + command.usage:24} {command.help}")


def _quit(shell: Shell, argument: str) -> None:
    shell.done = True


@dataclass(frozen=True, slots=True)
class Command:
    usage: str
    help: str
    run: Callable[[Shell, str], None]


COMMANDS = {
    "\\?": Command("", "this list", _help),
    "\\d": Command("[TABLE]", "tables, or the columns of one", _tables),
    "\\df": Command("[PREFIX]", "functions that ask a model", _functions),
    "\\table": Command("[NAME=]PATH", "open a file as a table", _table),
    "\\ask": Command("QUESTION", "draft a query for a question in plain words", _ask),
    "\\chat": Command("MESSAGE", "go on from the last question", _chat),
    "\\run": Command("", "run the query of the last question; its rows are the table last", _run),
    "\\explain": Command("QUERY", "the plan, and what it is expected to ask", _explain),
    "\\analyze": Command("QUERY", "run it, and show the plan with measurements", _analyze),
    "\\estimate": Command("QUERY", "what a query is expected to ask and to spend", _estimate),
    "\\trace": Command("[FILE.html]", "the calls of the last query, or a page of them", _trace),
    "\\more": Command("[all]", "the next rows of the last query, or all of them", _more),
    "\\mode": Command("[NAME]", "how results are written: " + ", ".join(_MODES), _mode),
    "\\o": Command("[FILE]", "write the next result to a file, by its extension", _output),
    "\\e": Command("[QUERY]", "edit the last statement in your editor ($EDITOR)", _edit),
    "\\c": Command("", "forget what was typed; the way out of an open quote", _forget),
    "\\i": Command("SCRIPT", "run the statements of a file", _script),
    "\\dialect": Command(
        "[NAME]", "sql, blendsql, suql, mysql, snowflake, bigquery, databricks", _dialect
    ),
    "\\timing": Command("", "show how long each query took, or no more", _timing),
    "\\x": Command("", "show whole cells, or cut ones", _full_cells),
    "\\q": Command("", "leave", _quit),
}

WORDS = {"help": "\\?", "exit": "\\q", "quit": "\\q"}
"""The words that people type first, and the commands that they mean."""


# --- the prompt ---------------------------------------------------------------------------------


def is_complete(text: str) -> bool:
    """A command, statements of which the last has its semicolon, or nothing but semicolons and
    comments."""
    return _is_command(text) or (bool(text.strip()) and not script(split(text)[1]))


def _is_command(text: str) -> bool:
    return text.lstrip().startswith(("\\", ".")) or text.strip().lower() in WORDS


def _parts(text: str) -> list[str]:
    """Commands, each a line, and the texts between them; joined by newlines they are ``text``."""
    parts: list[str] = []
    between: list[str] = []
    for line in text.split("\n"):
        if line.lstrip().startswith("\\") and not split("\n".join(between))[1]:
            if between:
                parts.append("\n".join(between))
                between = []
            parts.append(line.strip())
        else:
            between.append(line)
    return [*parts, "\n".join(between)] if between else parts


def _prompt(shell: Shell) -> int:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import ANSI
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer

    from blendfusion.apps.cli.completion import SqlCompleter

    keys, file = KeyBindings(), _history()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line.strip() == "\\c":
            buffer.reset()
        elif not buffer.text.strip() or is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    prompt: PromptSession[str] = PromptSession(
        history=InMemoryHistory() if file is None else FileHistory(str(file)),
        completer=SqlCompleter(shell.session, COMMANDS),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        key_bindings=keys,
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: ANSI(
            _continuation(prompt.default_buffer.text, line)
        ),
    )
    shell.print(WELCOME)
    while not shell.done:
        try:
            text = prompt.prompt(PROMPT, default=shell.draft)
            shell.draft = ""
        except Termination:
            raise
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        for statement in [text] if _is_command(text) else split(text)[0]:
            if not _survives(shell, statement if isinstance(statement, str) else statement.text):
                break
    return 0


def _continuation(text: str, line: int) -> str:
    """The prompt of a further line; one inside quotes says so."""
    before = "\n".join(text.split("\n")[: line + 1])
    return _QUOTED if has_open_quote(before) else CONTINUED


def _survives(shell: Shell, text: str) -> bool:
    """Run the typed statements. An error is shown and skips the rest of them; the shell goes on."""
    begun = shell.session.ledger.usage
    try:
        shell.run(text)
    except BlendFusionError as error:
        error.print()
        return False
    except Termination:
        raise
    except KeyboardInterrupt:
        print(fit_terminal(interruption(shell.session, begun)), file=sys.stderr)
        return False
    return True


def _history() -> Path | None:
    """The history file, readable by its owner alone; None where no file can be."""
    file = cache_folder() / "history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return None
    return file
