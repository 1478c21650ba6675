"""The manifest of a run, its replay without a model, and what changed since."""

from blendfusion.services import Service

SERVICE = Service(
    session="session:Comparing",
    frame="frame:Replaying",
    names={"Manifest": "manifest"},
)
