"""The packages, found on disk, the optional compiled attention, the README as an index shows it and the
addresses of the project; the rest stands in pyproject.toml.

The compiled module uses Python's stable ABI, so that one wheel (cp311-abi3) serves every version from
3.11 on. BLENDFUSION_PURE=1 leaves it out: the wheel is then py3-none-any.

BLENDFUSION_REPOSITORY is the address of the repository that the release is made from, as GitHub lays
pages out. Without it a build claims no address, and the README loses its links to files.
"""

import os
import re
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = PYPROJECT["tool"]["setuptools"]["package-dir"]
REPOSITORY = os.environ.get("BLENDFUSION_REPOSITORY", "").rstrip("/")
FILES = f"{REPOSITORY}/blob/v{PYPROJECT['project']['version']}"
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
