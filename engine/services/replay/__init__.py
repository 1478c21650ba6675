"""The manifest of a run, its replay without a model, and what changed since."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.external_tables",),
    session="session:Comparing",
    frame="frame:Replaying",
    names={"Manifest": "manifest"},
)
