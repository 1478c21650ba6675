"""Pages of runs: one self-contained HTML page with the plan, its counts and samples of answers."""

from blendfusion.services import Service

SERVICE = Service(needs=("models.services.prompts",), pages="html_report")
