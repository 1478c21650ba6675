"""``blendfusion mcp``: a server of the Model Context Protocol, for agents."""

from __future__ import annotations

import argparse
import hmac
import os
from typing import Any

from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.errors import OptionError
from blendfusion.places.ports import check_port
from blendfusion.services.mcp.server import server_of

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TOKEN = "BLENDFUSION_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mcp``."""
    parser.set_defaults(run=_mcp)
    add_session(parser)
    parser.add_argument(
        "--values",
        choices=("on", "off"),
        default="off",
        help="whether the tools sample and provenance show values of the tables (default: off); "
        "rows of queries always have them",
    )
    parser.add_argument(
        "--http",
        type=int,
        metavar="PORT",
        help="serve HTTP on this port of the loopback, instead of standard input and output; the "
        f"environment variable {_TOKEN} has the token that requests need",
    )


def _mcp(arguments: argparse.Namespace) -> int:
    arguments.read_only = True
    arguments.read_files = "off"
    if arguments.budget is None:
        raise OptionError(
            "agents need a budget: the most that they may ask in all",
            hint="--budget values=1000, or cost=2.5 with --price.",
        )
    with session_of(arguments) as session:
        session.budget = budget_of(arguments)
        server = server_of(session, show_values=arguments.values == "on")
        if arguments.http is None:
            server.run()
        else:
            _serve(server, arguments.http)
    return 0


def _serve(server: Any, port: int) -> None:
    import uvicorn

    token = os.environ.get(_TOKEN)
    if not token:
        raise OptionError(
            f"HTTP needs a token in the environment variable {_TOKEN}",
            hint=f"{_TOKEN}=$(openssl rand -hex 32) blendfusion mcp --http {port} …",
        )
    check_port(port, option="--http")
    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    app = TokenGuard(server.streamable_http_app(), token)
    uvicorn.run(app, host=_LOOPBACK[0], port=port, log_level="warning")


class TokenGuard:
    """An application of ASGI that only answers requests with the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; 401 without the token."""
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, self._wanted):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no token"})
            return
        await self._app(scope, receive, send)
