"""dbt's adapter of BlendFusion: ``type: blendfusion`` in profiles.yml (docs/dbt.md)."""

from pathlib import Path

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.blendfusion.adapter import BlendFusionAdapter
from dbt.adapters.blendfusion.connections import BlendFusionCredentials

Plugin = AdapterPlugin(
    adapter=BlendFusionAdapter,
    credentials=BlendFusionCredentials,
    include_path=str(Path(__file__).parent),
    project_name="dbt_blendfusion",
)
