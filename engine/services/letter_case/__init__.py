"""Names in another letter case than tables and columns have them, in queries and in verbs."""

from blendfusion.services import Service

SERVICE = Service(letter_case="respellings")
