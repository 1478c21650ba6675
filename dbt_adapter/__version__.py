"""The version of the adapter, which is that of BlendFusion."""

from importlib.metadata import version as version_of

version = ".".join(version_of("blendfusion").split(".")[:3])
