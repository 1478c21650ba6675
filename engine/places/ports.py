"""Addresses at which a server may listen."""

from __future__ import annotations

import socket

from blendfusion.errors import OptionError


def check_port(port: int, host: str = "127.0.0.1", option: str = "--port") -> None:
    """Raises OptionError for an address at which nothing can listen: servers of other packages say
    of it only that they did not start, or nothing. ``option`` names the port."""
    if not 0 <= port < 1 << 16:
        raise OptionError(f"{option} {port} is no port", hint="Ports go from 1 to 65535.")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(place)
    except OSError as problem:
        raise OptionError(
            f"cannot listen at {host}, {option} {port}: {problem.strerror or problem}",
            hint=f"Name another {option}, or an address of this machine.",
        ) from problem
