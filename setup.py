"""The optional compiled kernels; everything else stands in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "blendfusion.native._kernels",
            ["native/kernels.cpp"],
            extra_compile_args=["-O3", "-std=c++17", "-pthread"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
