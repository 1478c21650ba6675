"""Servers at addresses at which nothing can listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.places.ports import check_port


@pytest.fixture
def taken() -> Iterator[str]:
    """A port of the loopback that something listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@pytest.mark.parametrize(
    ("command", "option"),
    [("serve", "--port"), ("serve", "--metrics-port"), ("ui", "--port"), ("mcp", "--http")],
)
@pytest.mark.parametrize("port", ["taken", "99999", "-1"])
def test_a_command_says_which_port_is_not_to_be_had(
    command: str,
    option: str,
    port: str,
    taken: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("mcp")
    monkeypatch.setenv("BLENDFUSION_TOKEN", "secret")
    number = taken if port == "taken" else port
    given = ["--cache", "off", "--budget", "values=1", f"{option}={number}"]
    assert main([command, *given]) == 2
    shown = capfd.readouterr()
    assert "://" not in shown.out
    first, second = shown.err.splitlines()
    assert first.startswith("error: ")
    assert option in first
    assert number in first
    assert second.startswith("Hint: ")


def test_another_host_is_named() -> None:
    with pytest.raises(bf.OptionError, match=r"cannot listen at nowhere\.invalid"):
        check_port(0, "nowhere.invalid")
    check_port(0, "localhost")


def test_files_that_are_no_certificate_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.pem").write_text("no certificate\n")
    pair = ["--tls-cert", str(tmp_path / "x.pem"), "--tls-key", str(tmp_path / "x.pem")]
    assert main(["serve", "--cache", "off", *pair]) == 2
    assert "are no certificate with its key" in capfd.readouterr().err
