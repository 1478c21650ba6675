"""What is installed: the listed packages, nothing else, without a compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LATEST = PYPROJECT["tool"]["blendfusion"]["version"]
FOLDERS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
SHIPPED = (
    ".py",
    ".pyi",
    "py.typed",
    ".css",
    ".html",
    ".js",
    ".txt",
    ".csv",
    ".jsonl",
    ".sql",
    ".yml",
)


def files_of(folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*") if f.is_file() and f.name.endswith(SHIPPED)]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is packed, so that nothing is left beside the sources."""
    pytest.importorskip("build")
    source = tmp_path_factory.mktemp("source")
    manifest = (ROOT / "MANIFEST.in").read_text("utf-8").splitlines()
    named = [name for line in manifest[:-1] for name in line.split()[1:]]
    always = ("pyproject.toml", "README.md", "LICENSE", "setup.py", "MANIFEST.in")
    for name in dict.fromkeys((*FOLDERS.values(), *always, *named)):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, source / name)
    return source


def built(source: Path, out: Path, kind: str, **variables: str) -> Path:
    """The file that a build makes, on a machine without a compiler."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out)]
    without = {"PATH": "/nowhere", "CC": "/nowhere/cc", "CXX": "/nowhere/c++"}
    done = subprocess.run(
        [*command, str(source)],
        capture_output=True,
        text=True,
        check=False,
        env=without | variables,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = out.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The fallback for every platform, which leaves the compiled module out."""
    file = built(sources, tmp_path_factory.mktemp("wheel"), "wheel", BLENDFUSION_PURE="1")
    assert file.name.endswith("-py3-none-any.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_every_folder_with_code_is_a_package() -> None:
    for folder in FOLDERS.values():
        for file in files_of(ROOT / folder):
            assert (file.parent / "__init__.py").is_file(), f"{file.parent} has no __init__.py"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"blendfusion", "dbt", f"blendfusion-{LATEST}.dist-info"}


def test_the_wheel_holds_every_module_once(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if name.startswith(("blendfusion/", "dbt/"))}
    wanted = set()
    for package, folder in FOLDERS.items():
        place = Path(*package.split("."))
        for file in files_of(ROOT / folder):
            wanted.add((place / file.relative_to(ROOT / folder)).as_posix())
    assert held == wanted
    assert "blendfusion/py.typed" in held
    assert "blendfusion/examples/reviews.csv" in held


def test_the_wheel_of_a_platform_serves_every_version_of_python(
    sources: Path, tmp_path: Path
) -> None:
    assert "-cp311-abi3-" in built(sources, tmp_path, "wheel").name


@pytest.mark.parametrize(
    ("platform", "wheel"),
    [
        ("linux", "cp311-manylinux_x86_64"),
        ("macos", "cp311-macosx_x86_64"),
        ("windows", "cp311-win_amd64"),
    ],
)
def test_cibuildwheel_reads_its_configuration(platform: str, wheel: str) -> None:
    """The wheels that it would build, of which it needs containers for Linux alone."""
    pytest.importorskip("cibuildwheel", reason="cibuildwheel is no dependency")
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers"]
    machine = ["--archs", "AMD64" if platform == "windows" else "x86_64"]
    done = subprocess.run(
        [*command, "--platform", platform, *machine],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout.split() == [wheel], done.stderr


def test_the_sdist_has_tests_and_documentation(sources: Path, tmp_path: Path) -> None:
    with tarfile.open(built(sources, tmp_path, "sdist")) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"docs/guide.md", "tests/conftest.py", "tests/support/loopback.py"} <= names
    assert {"tests/golden/journeys/shell.txt", "examples/reviews.csv", "CHANGELOG.md"} <= names
    assert {"Makefile", "mkdocs.yml", "site/pages.py", "native/attention.cpp"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".so")]


def test_the_readme_of_an_index_has_no_link_into_the_repository(metadata: Message) -> None:
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert "`docs/tutorial.md`" in text


def test_an_index_takes_both_files_and_renders_the_readme(
    sources: Path, wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    pytest.importorskip("twine")
    pytest.importorskip("comrak", reason="readme_renderer[md] renders Markdown as an index does")
    files = [str(wheel.filename), str(built(sources, tmp_path, "sdist"))]
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(files)


def test_a_build_without_a_repository_claims_no_address(metadata: Message) -> None:
    """A link that leads nowhere is worse than none."""
    assert metadata.get_all("Project-URL") is None


def test_a_release_names_its_repository(sources: Path, tmp_path: Path) -> None:
    home = "https://git.example.org/blendfusion/blendfusion"
    variables = {"BLENDFUSION_PURE": "1", "BLENDFUSION_REPOSITORY": f"{home}/"}
    with zipfile.ZipFile(built(sources, tmp_path, "wheel", **variables)) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    files = f"{home}/blob/v{LATEST}"
    assert dict(url.split(", ") for url in metadata.get_all("Project-URL", [])) == {
        "Homepage": home,
        "Documentation": f"{files}/docs",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
    links = re.findall(r"\]\(([^)]*)\)", str(metadata.get_payload()))
    own = [link.removeprefix(f"{files}/").partition("#")[0] for link in links if files in link]
    assert "docs/tutorial.md" in own
    assert [file for file in own if not (ROOT / file).exists()] == []
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_wheel_says_what_it_is(metadata: Message) -> None:
    project = PYPROJECT["project"]
    assert metadata["Name"] == "blendfusion"
    assert metadata["Version"] == LATEST
    assert metadata["Summary"] == project["description"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).startswith("# BlendFusion")


def test_every_extra_is_offered(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "local",
        "gemma",
        "hub",
        "outlines",
        "postgres",
        "ray",
        "search",
        "xlsx",
        "documents",
        "ocr",
        "speech",
        "all",
        "docs",
        "compare",
        "databases",
        "lakes",
        "mcp",
        "sqlalchemy",
        "dbt",
        "dev",
    }


def test_versions_agree() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)", changes, re.MULTILINE)
    cited = re.findall(r"^version: (.*)", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert [LATEST] == released[:1] == cited


@pytest.fixture
def tagged(tmp_path: Path) -> Callable[..., str]:
    """git in a folder with what tells the version."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)

    def git(*command: str) -> str:
        own = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *own, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return git


def built_version(folder: Path) -> str:
    command = [sys.executable, "-W", "ignore", "setup.py", "-q", "--version"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


def test_the_version_is_that_of_the_tag(tagged: Callable[..., str], tmp_path: Path) -> None:
    assert built_version(tmp_path) == LATEST
    tagged("init", "-q")
    tagged("add", "-A")
    tagged("commit", "-qm", "one")
    assert built_version(tmp_path) == LATEST
    tagged("tag", "other")
    tagged("tag", f"v{LATEST}")
    assert built_version(tmp_path) == LATEST
    tagged("commit", "-q", "--allow-empty", "-m", "two")
    *first, last = LATEST.split(".")
    later = f"{'.'.join(first)}.{int(last) + 1}"
    commit = tagged("rev-parse", "--short", "HEAD")
    assert built_version(tmp_path) == f"{later}.dev1+g{commit}"
    tagged("tag", f"v{later}")
    assert built_version(tmp_path) == f"the tag is v{later}, and pyproject.toml says {LATEST}"
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: blendfusion\nVersion: 7.0\n")
    assert built_version(tmp_path) == "7.0"


def test_the_installed_package_is_typed() -> None:
    assert (resources.files("blendfusion") / "py.typed").is_file()


def test_nothing_else_of_ours_can_be_imported(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys\n"
        f"print([n for n in {sorted(FOLDERS.values())!r} if u.find_spec(n) is not None])"
    )
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
