"""The packages, found on disk, and the optional compiled attention; the rest stands in pyproject.toml."""

import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"][
    "package-dir"
]


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


setup(
    packages=packages(),
    ext_modules=[
        Extension(
            "blendfusion.native._attention",
            ["native/attention.cpp"],
            depends=["native/attention_kernel.h", "native/thread_team.h"],
            include_dirs=[str(folder) for folder in [HEADERS] if (folder / "ggml.h").is_file()],
            extra_compile_args=["-O3", "-std=c++17", "-pthread", "-Wno-psabi"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ],
)
