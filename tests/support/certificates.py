"""Certificates for servers of tests, made by OpenSSL."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def certificate_for(address: str, folder: Path) -> tuple[Path, Path]:
    """A key and a certificate for an IP address, valid for two days; skips without OpenSSL."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=test", "-addext", f"subjectAltName=IP:{address}"]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


def serving_context(certificate: tuple[Path, Path], protocols: Sequence[str]) -> ssl.SSLContext:
    """What a server needs that has a key and a certificate, and offers these protocols."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    if protocols:
        context.set_alpn_protocols(protocols)
    return context
