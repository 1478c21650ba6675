"""Weights that are installed as packages are found without importing them."""

import hashlib
import sys

import pytest

from blendfusion.errors import ModelNotFound
from blendfusion.models.protocol import python_packages as packaged
from blendfusion.models.protocol.python_packages import (
    cache_folder,
    gemma_weights,
    packaged_weights,
)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder of packages that Python finds first; answers a function that adds a file."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def add(package, name, content):
        file = tmp_path / "site" / package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / package / "__init__.py").write_text("raise ImportError('imported')")
        file.write_bytes(content)
        return file

    return add


def test_the_weights_of_a_package_are_found_without_importing_it(installed, monkeypatch):
    monkeypatch.setattr(packaged, "SMOLLM2_PACKAGE", "some_weights")
    file = installed("some_weights", "model.gguf", b"GGUF")

    assert packaged_weights() == file
    assert "some_weights" not in sys.modules


def test_a_package_that_is_not_installed_has_no_weights(monkeypatch):
    monkeypatch.setattr(packaged, "SMOLLM2_PACKAGE", "no_such_package")
    monkeypatch.setattr(packaged, "_GEMMA_PARTS", ("no_such_part",))

    assert packaged_weights() is None
    assert gemma_weights() is None


@pytest.fixture
def parts(installed, monkeypatch):
    names = ("part_one", "part_two")
    monkeypatch.setattr(packaged, "_GEMMA_PARTS", names)
    for number, name in enumerate(names):
        installed(name, f"data/{packaged.GEMMA_NAME}.part{number:02d}", f"piece {number};".encode())
    return b"piece 0;piece 1;"


def test_parts_are_joined_once_into_the_cache(parts, monkeypatch):
    monkeypatch.setattr(packaged, "GEMMA_SHA256", hashlib.sha256(parts).hexdigest())

    joined = gemma_weights()

    assert joined == cache_folder() / packaged.GEMMA_NAME
    assert joined.read_bytes() == parts
    before = joined.stat().st_mtime_ns
    assert gemma_weights().stat().st_mtime_ns == before


def test_parts_with_a_wrong_digest_are_refused_and_leave_nothing(parts):
    with pytest.raises(ModelNotFound, match="published digest"):
        gemma_weights()

    assert list(cache_folder().iterdir()) == []


def test_a_joined_file_of_the_wrong_size_is_joined_anew(parts, monkeypatch):
    monkeypatch.setattr(packaged, "GEMMA_SHA256", hashlib.sha256(parts).hexdigest())
    gemma_weights().write_bytes(b"cut off")

    assert gemma_weights().read_bytes() == parts
