"""Groups and entities that queries of a session keep by their names."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("udfs.services.columns",),
    session="session:Meanings",
    tables={"groups": "information:groups_of", "entities": "information:entities_of"},
)
