"""``blendfusion ui``: serves a page for queries on the loopback until Ctrl-C."""

from __future__ import annotations

import argparse
import threading
import warnings
import webbrowser

from blendfusion.cli.sessions import add_session, budget_of, session_of
from blendfusion.errors import OptionError
from blendfusion.ui.server import PageServer
from blendfusion.ui.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ui``."""
    parser.set_defaults(run=_ui)
    add_session(parser)
    parser.add_argument(
        "--read-write", action="store_true", help="allow more than reading the tables"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="N",
        help="port of the loopback (default: a free one)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address and open no browser"
    )


def _ui(arguments: argparse.Namespace) -> int:
    arguments.read_only = not arguments.read_write
    confirm_above, arguments.confirm_above = arguments.confirm_above, 0  # the page asks
    with session_of(arguments) as session:
        budget = budget_of(arguments)
        work = Workspace(session, arguments.dialect, budget, confirm_above)
        try:
            server = PageServer(work, arguments.port)
        except (OSError, OverflowError) as problem:
            raise OptionError(
                f"--port {arguments.port}: {problem}", hint="Leave it out for a free port."
            ) from problem
        warnings.showwarning = lambda message, *_: work.warn(str(message))
        with server:
            try:
                print(f"{server.url}\nThis address has a token: whoever has it can ask your model. "
                      "Ctrl-C ends it.", flush=True)  # fmt: skip
                if not arguments.no_browser:
                    threading.Thread(
                        target=webbrowser.open, args=(server.url,), daemon=True
                    ).start()
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                return 0
            finally:
                work.close()
    return 0
