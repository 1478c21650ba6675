"""Estimates the questions of a query by a run with guessed answers."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("models.services.prompts", "services.decided_groups"),
    estimates="estimate_frame:estimate_frame",
    seconds="expected_seconds:ExpectedSeconds",
)
