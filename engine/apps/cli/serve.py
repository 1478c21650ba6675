"""``blendfusion serve``: a server of Arrow Flight SQL until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.errors import OptionError
from blendfusion.services.server.grants import read_grants
from blendfusion.services.server.health import serve_health
from blendfusion.services.server.listener import serving

_TOKEN = "BLENDFUSION_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``serve``."""
    parser.set_defaults(run=_serve)
    add_session(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port (default: a free one)"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a token a line, of which each call needs one (default: the one in the environment "
        f"variable {_TOKEN}); beyond the loopback there must be one",
    )
    parser.add_argument(
        "--grants",
        type=Path,
        metavar="FILE",
        help="the users in TOML, each with a token, tables, functions and a budget of their own: "
        '[ann] token = "…", tables = ["reviews"], functions = ["llm_filter"], budget = "values=1000"',
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="a certificate, for TLS")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key")
    parser.add_argument(
        "--most-queries",
        type=int,
        default=8,
        metavar="N",
        help="queries that run at a time (default: 8); others wait",
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="N",
        help="serve http://127.0.0.1:N/health and /metrics",
    )


def _tokens(arguments: argparse.Namespace) -> list[str]:
    if arguments.token_file is not None:
        lines = arguments.token_file.read_text("utf-8").splitlines()
        found = [line.strip() for line in lines if line.strip()]
        if not found:
            raise OptionError(f"the file '{arguments.token_file}' contains no token")
        return found
    given = os.environ.get(_TOKEN)
    return [given] if given else []


@contextmanager
def _logs() -> Iterator[None]:
    """Writes what clients ask to standard error. Trouble with stored answers is a warning, which
    is there already."""
    logger, handler = logging.getLogger("blendfusion"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.addFilter(lambda record: record.name != "blendfusion.cache")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(before or logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _serve(arguments: argparse.Namespace) -> int:
    arguments.read_only = True
    arguments.read_files = "off"
    if arguments.most_queries < 1:
        raise OptionError("--most-queries is at least 1")
    grants = [] if arguments.grants is None else read_grants(arguments.grants)
    if grants and (arguments.index or arguments.budget or arguments.token_file):
        raise OptionError(
            "with --grants, there is no --index, --budget or --token-file",
            hint="Each user's grant has a token and a budget.",
        )
    with ExitStack() as opened:
        opened.enter_context(_logs())
        session = opened.enter_context(session_of(arguments))
        session.budget = budget_of(arguments)
        users = [(grant, opened.enter_context(session_of(arguments))) for grant in grants]
        server, statements, address = serving(
            session,
            host=arguments.host,
            port=arguments.port,
            tokens=[] if grants else _tokens(arguments),
            users=users,
            certificate=arguments.tls_cert,
            key=arguments.tls_key,
            most_queries=arguments.most_queries,
        )
        opened.callback(server.shutdown)
        if arguments.metrics_port is not None:
            health = serve_health(statements, arguments.metrics_port)
            opened.callback(health.server_close)
            opened.callback(health.shutdown)
        try:
            print(f"Arrow Flight SQL at {address}", flush=True)
            while True:
                Event().wait(3600)
        except KeyboardInterrupt:
            return 0
