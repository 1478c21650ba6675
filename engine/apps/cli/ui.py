"""``blendfusion ui``: serves a page for queries on the loopback until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import threading
import warnings
import webbrowser
from html import escape

from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.apps.ui.server import PageServer
from blendfusion.apps.ui.workspace import Workspace
from blendfusion.places.ports import check_port
from blendfusion.places.private_folder import private_folder

_PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<a href="{url}">BlendFusion</a>
"""


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


def private_page(owner: object, url: str) -> str:
    """The address of a file for this user alone that leads to ``url``, as long as ``owner`` lives.
    A browser gets its address on the command line, which everybody on the machine can read."""
    file = private_folder(owner, "blendfusion-ui-") / "open.html"
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as page:
        page.write(_PAGE.format(url=escape(url)))
    return file.as_uri()


def _ui(arguments: argparse.Namespace) -> int:
    arguments.read_only = not arguments.read_write
    confirm_above, arguments.confirm_above = arguments.confirm_above, 0  # the page asks
    with session_of(arguments) as session:
        budget = budget_of(arguments, session)
        work = Workspace(session, arguments.dialect, budget, confirm_above)
        check_port(arguments.port)
        server = PageServer(work, arguments.port)
        warnings.showwarning = lambda message, *_: work.warn(str(message))
        with server:
            try:
                print(f"{server.url}\nThis address has a token: whoever has it can ask your model. "
                      "Ctrl-C ends it.", flush=True)  # fmt: skip
                if not arguments.no_browser:
                    page = private_page(server, server.url)
                    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                return 0
            finally:
                work.close()
    return 0
