"""Answers with an error bar: counts, sums and averages from a sample, where a user asks for it."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.decided_groups",),
    frame="frame:Approximating",
    names={"Within": "within"},
)
