"""The version by git's tags, the packages, found on disk, the optional compiled attention, the README as an
index shows it and the addresses of the project; the rest stands in pyproject.toml.

The compiled module uses Python's stable ABI, so that one wheel (cp311-abi3) serves every version from
3.11 on. BLENDFUSION_PURE=1 leaves it out: the wheel is then py3-none-any.

BLENDFUSION_REPOSITORY is the address of the repository that the release is made from, as GitHub lays
pages out. Without it a build claims no address, and the README loses its links to files.
"""

import os
import re
import subprocess
import sysconfig
import tomllib
from email import message_from_string
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = PYPROJECT["tool"]["setuptools"]["package-dir"]
REPOSITORY = os.environ.get("BLENDFUSION_REPOSITORY", "").rstrip("/")
GIT = ("git", "-C", str(ROOT), "-c", "safe.directory=*")
"""In the container of a build the folder belongs to somebody else."""


def version() -> str:
    """That of the tag: 0.1.0 of v0.1.0, and 0.1.1.dev2+gf00 two commits later. An sdist says it; without
    git, or before the first tag, it is pyproject.toml's."""
    said, latest = ROOT / "PKG-INFO", str(PYPROJECT["tool"]["blendfusion"]["version"])
    if said.is_file():
        return str(message_from_string(said.read_text("utf-8"))["Version"])
    described = described_commit() if (ROOT / ".git").exists() else ""
    if not described:
        return latest
    tag, commits, commit = described.removeprefix("v").rsplit("-", 2)
    if commits == "0":
        if tag != latest:
            raise SystemExit(f"the tag is v{tag}, and pyproject.toml says {latest}")
        return tag
    *first, last = tag.split(".")
    return ".".join([*first, f"{int(last) + 1}.dev{commits}+{commit}"])


def described_commit() -> str:
    """TAG-COMMITS-gCOMMIT of the last tag of a version; '' without one, or without git."""
    command = [*GIT, "describe", "--tags", "--long", "--match", "v[0-9]*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


VERSION = version()
FILES = f"{REPOSITORY}/blob/{VERSION.partition('+g')[2] or f'v{VERSION}'}"
if REPOSITORY and not re.fullmatch(r"https://[^\s/]+/\S+", REPOSITORY):
    raise SystemExit(
        f"BLENDFUSION_REPOSITORY is not an https address of a repository: {REPOSITORY}"
    )


HEADERS = Path(sysconfig.get_path("purelib")) / "include"
"""Where llama-cpp-python installs the headers of llama.cpp, if it was installed before."""


def packages() -> list[str]:
    """Every folder with an ``__init__.py``, by the name under which it is imported."""
    found = set()
    for package, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            below = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join([package, *below]))
    return sorted(found)


def readme() -> str:
    """README.md without pictures. Its links to files, which an index does not have, lead to the
    repository, or are left out if there is none."""
    text = (ROOT / "README.md").read_text("utf-8")
    text = re.sub(r"^!\[.*?\]\(.*?\)\n+", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)([^)]*)\)", _link, text)


def _link(link: re.Match[str]) -> str:
    name, target = link.groups()
    if REPOSITORY:
        return (
            f"[{name}]({FILES}/README.md{target})"
            if target[0] == "#"
            else f"[{name}]({FILES}/{target})"
        )
    return f"`{name}`" if re.fullmatch(r"[\w/.-]+", name) else name


def addresses() -> dict[str, str]:
    """The addresses of the project by their labels; none if it has no repository."""
    if not REPOSITORY:
        return {}
    return {
        "Homepage": REPOSITORY,
        "Documentation": f"{FILES}/docs",
        "Changelog": f"{FILES}/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }


PURE = os.environ.get("BLENDFUSION_PURE", "") == "1"

setup(
    version=VERSION,
    packages=packages(),
    project_urls=addresses(),
    long_description=readme(),
    long_description_content_type="text/markdown",
    options={} if PURE else {"bdist_wheel": {"py_limited_api": "cp311"}},
    ext_modules=[]
    if PURE
    else [
        Extension(
            "blendfusion.native._attention",
            ["native/attention.cpp"],
            depends=["native/attention_kernel.h", "native/thread_team.h"],
            include_dirs=[str(folder) for folder in [HEADERS] if (folder / "ggml.h").is_file()],
            extra_compile_args=["-O3", "-std=c++17", "-pthread", "-Wno-psabi"],
            extra_link_args=["-pthread"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
        )
    ],
)
