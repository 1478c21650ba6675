"""Certificates and logins of connections to servers."""

from __future__ import annotations

import base64
import os
import ssl


def trusted_certificates() -> ssl.SSLContext:
    """The certificates that the environment names (SSL_CERT_FILE, SSL_CERT_DIR), else Mozilla's.
    Reading them takes tens of milliseconds."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not (file or folder):
        import certifi

        file = certifi.where()
    context = ssl.create_default_context(cafile=file or None, capath=folder or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def basic_login(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
