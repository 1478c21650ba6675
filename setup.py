"""The optional compiled kernels; everything else stands in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            f"blendfusion.native._{name}",
            [f"native/{name}.cpp"],
            depends=[f"native/{name}_kernel.h"] if name == "attention" else [],
            extra_compile_args=["-O3", "-std=c++17", "-pthread", "-Wno-psabi"],
            extra_link_args=["-pthread"],
            optional=True,
        )
        for name in ("kernels", "attention")
    ]
)
