"""Short forms of queries, as analysts know them: SUMMARIZE, and USING SAMPLE."""

from blendfusion.services import Service

SERVICE = Service(short_forms="spell_out:spell_out")
