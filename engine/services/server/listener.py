"""Where a server listens, and whom it lets in."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from blendfusion.errors import OptionError
from blendfusion.places.ports import check_port
from blendfusion.services.server.flight import CALLER, FlightSqlServer, TokenCheck
from blendfusion.services.server.grants import Grant
from blendfusion.services.server.statements import Statements
from blendfusion.session import Session


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serving(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tokens: Sequence[str] = (),
    users: Sequence[tuple[Grant, Session]] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    most_queries: int = 8,
    wait_seconds: float = 30.0,
) -> tuple[FlightSqlServer, Statements, str]:
    """A server over ``session`` that listens, its statements, and its address. ``users`` have
    sessions of their own, which their grants restrict, and then nobody has ``session``. Raises
    OptionError for an address beyond the loopback without tokens, and for one that is taken."""
    if not is_loopback(host) and not tokens and not users:
        raise OptionError(
            f"'{host}' is reached from other machines, and no token is asked for",
            hint="--token-file FILE: a token a line. Without one, serve the loopback: 127.0.0.1.",
        )
    if (certificate is None) != (key is None):
        raise OptionError(
            "TLS needs a certificate and its key", hint="--tls-cert FILE --tls-key FILE."
        )
    scheme = "grpc" if certificate is None else "grpc+tls"
    options: dict[str, Any] = {}
    known = {grant.token: grant.user for grant, _ in users} or dict.fromkeys(tokens, "")
    if known:
        options["middleware"] = {CALLER: TokenCheck(known)}
    if certificate is not None and key is not None:
        options["tls_certificates"] = [_pair(certificate, key)]
    statements = Statements(session, most_queries, wait_seconds)
    for grant, own in users:
        grant.restrict(own)
    served = {grant.user: statements.of_user(own) for grant, own in users} or {"": statements}
    shown = f"[{host}]" if ":" in host else host
    check_port(port, host)
    try:
        server = FlightSqlServer(served, f"{scheme}://{shown}:{port}", **options)
    except (OSError, pa.ArrowException, flight.FlightError) as problem:
        raise OptionError(
            f"cannot listen at {shown}:{port}: {str(problem).splitlines()[0]}"
        ) from problem
    return server, statements, f"{scheme}://{shown}:{server.port}"


def _pair(certificate: Path, key: Path) -> flight.CertKeyPair:
    """A certificate with its key. Raises OptionError for files that are none, or do not fit."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, "")
    except ssl.SSLError as problem:
        raise OptionError(
            f"'{certificate}' and '{key}' are no certificate with its key: {problem.reason}",
            hint="Both are PEM files; the key has no password.",
        ) from problem
    return flight.CertKeyPair(certificate.read_bytes(), key.read_bytes())
