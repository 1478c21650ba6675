"""Large catalogues: the tables and columns that a model sees are those that the question needs."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from amounts import long_after

import blendfusion as bf
from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.shown_tables import TableChoice

COLUMNS = (
    "name region city status amount created_at updated_at owner level kind note score total price "
    "currency source channel priority"
).split()
SUBJECTS = (
    "machines bicycles ships trains castles bridges forests lakes islands deserts vegetables fruits "
    "cakes wines beers coffees perfumes jewels shoes coats hats scarves gloves lamps sofas chairs desks "
    "beds curtains carpets garages elevators engines batteries turbines pipelines mines quarries dentists "
    "nurses pharmacists lawyers accountants architects builders plumbers gardeners farmers fishermen "
    "soldiers pilots astronauts journalists photographers dancers comedians theatres circuses festivals "
    "parades"
).split()
SYNONYMS = {
    "machines": "apparatus",
    "bicycles": "bikes",
    "ships": "vessels",
    "trains": "railways",
    "forests": "woods",
    "cakes": "pastries",
    "beers": "ales",
    "perfumes": "fragrances",
    "jewels": "gems",
    "shoes": "footwear",
    "coats": "jackets",
    "gloves": "mittens",
    "lamps": "lights",
    "sofas": "couches",
    "desks": "workstations",
    "curtains": "drapes",
    "carpets": "rugs",
    "elevators": "lifts",
    "engines": "motors",
    "batteries": "accumulators",
    "pipelines": "pipes",
    "lawyers": "attorneys",
    "accountants": "bookkeepers",
    "builders": "constructors",
    "farmers": "growers",
    "soldiers": "troops",
    "pilots": "aviators",
    "journalists": "reporters",
    "photographers": "cameramen",
    "comedians": "humorists",
    "theatres": "playhouses",
    "festivals": "fairs",
    "parades": "processions",
    "vegetables": "veggies",
    "mines": "collieries",
    "pharmacists": "chemists",
    "deserts": "wastelands",
    "castles": "fortresses",
    "hats": "caps",
    "beds": "cots",
}


class Warehouse:
    """A session over many tables. ``sql`` is the next draft; ``tables`` are those that the model
    saw last."""

    def __init__(self, names: Sequence[str]) -> None:
        self.sql = ""
        self.text = ""
        model = bf.ScriptedModel(self._answer)
        self.session = bf.connect(model, cache=None, progress="off", show_values="on")
        draw = random.Random(7)
        for name in names:
            columns: dict[str, list[object]] = {f"{name.rstrip('s')}_id": list(range(4))}
            for column in draw.sample(COLUMNS, 12):
                columns[column] = [f"{column} {draw.randrange(900)}" for _ in range(4)]
            self.session.from_pydict(columns, name=name)

    def _answer(self, call: bf.Request) -> str:
        self.text = str(dict(zip(call.task.columns, call.values, strict=True))["tables"])
        return self.sql

    @property
    def tables(self) -> list[str]:
        return re.findall(r"^CREATE TABLE (\w+) ", self.text, re.MULTILINE)

    def sees(self, question: str, table: str) -> bool:
        self.sql = f"SELECT count(*) FROM {table}"
        self.session.ask(question, rounds=0)
        return table in self.tables


def test_a_synonym_finds_its_table_of_120() -> None:
    pytest.importorskip("wordllama", reason="the vectors of words are those of wordllama")
    warehouse = Warehouse([*SUBJECTS, *(f"{name}_archive" for name in SUBJECTS)])
    choice = TableChoice(read_catalog(warehouse.session), 4096)
    shown = {w: choice.visible(f"How many {w} are there by region?", ()) for w in SYNONYMS.values()}
    found = [w for t, w in SYNONYMS.items() if t in (one.name for one in shown[w].catalog.tables)]
    assert len(found) >= 0.8 * len(SYNONYMS), sorted({*SYNONYMS.values()} - {*found})


FOLLOWING = [
    *("And the same for 2022?", "Only those above 2, please", "No, I meant by city"),
    *("How many of these are there?", "Sort them the other way round", "And the average of it?"),
]


@pytest.mark.parametrize("seed", long_after(1, range(8)))
def test_the_table_of_a_conversation_stays_in_the_prompt(seed: int) -> None:
    """Five dialogues each: a question that names a table, three that name none, one about another
    table, and one more."""
    draw = random.Random(seed)
    warehouse = Warehouse(SUBJECTS)
    for _ in range(5):
        first, second = draw.sample(SUBJECTS, 2)
        chat = warehouse.session.chat(rounds=0)
        for message, table in [
            (f"How many {first} are there by region?", first),
            *((message, first) for message in draw.sample(FOLLOWING, 3)),
            (f"And how many {second}?", second),
            (draw.choice(FOLLOWING), second),
        ]:
            warehouse.sql = f"SELECT count(*) FROM {table}"
            chat.ask(message)
            assert table in warehouse.tables, message
            assert len(warehouse.tables) < 20


def test_a_value_that_one_table_of_100_holds_finds_it() -> None:
    """40 towns, each in one table whose name says nothing of it."""
    warehouse = Warehouse(SUBJECTS)
    towns = [f"{first}{last}" for first in TOWNS for last in ("kirchen", "hagen", "stedt", "roda")]
    for number, town in enumerate(towns):
        place = ["Ulm", town, "Ulm", "Bonn"]
        columns: dict[str, list[object]] = {"code": [1, 2, 3, 4], "place": place}
        warehouse.session.from_pydict(columns, name=f"zz_{number:02}")
    catalog = read_catalog(warehouse.session)
    choice, index = TableChoice(catalog, 4096), ValueIndex(catalog)
    for number, town in enumerate(towns):
        question = f"How much came from {town} by region and status?"
        shown = choice.visible(question, index.links(question))
        assert f"zz_{number:02}" in [one.name for one in shown.catalog.tables], town


TOWNS = ["Wermels", "Ober", "Nieder", "Alten", "Neu", "Gross", "Klein", "Wald", "Berg", "Sont"]


def test_a_value_of_one_table_alone_and_the_table_of_a_metric_are_seen(tmp_path: Path) -> None:
    warehouse = Warehouse([*SUBJECTS, "ticket_history"])
    place = ["Ulm", "Wermelskirchen", "Ulm", "Bonn"]
    warehouse.session.from_pydict({"code": [1, 2, 3, 4], "place": place}, name="zz_depots")
    assert warehouse.sees("How much came from Wermelskirchen by region and status?", "zz_depots")
    (tmp_path / "layer.toml").write_text(
        "[metrics.churn]\nsql = 'count(*)'\ntable = 'ticket_history'\n"
        "[metrics.growth]\nsql = 'count(*)'\ntable = 'wines'"
    )
    warehouse.session.register_layer(tmp_path / "layer.toml")
    assert warehouse.sees("What is the churn by region?", "ticket_history")
    assert "metric churn of ticket_history" in warehouse.text


def test_what_the_model_does_not_see_is_said() -> None:
    warehouse = Warehouse(SUBJECTS)
    warehouse.sql = "SELECT count(*) FROM lamps"
    draft = warehouse.session.ask("How many lamps are there?")
    assert draft.left_out == (
        f"The model saw {len(warehouse.tables)} of 60 tables, those most like the question: "
        "tables=[…] names the tables to show."
    )
    assert draft.left_out in draft.notes
    assert warehouse.session.ask("How many lamps are there?", ["lamps", "hats"]).left_out == ""


def test_a_table_of_3000_columns_is_cut_to_those_that_matter() -> None:
    model = bf.ScriptedModel(lambda call: seen.append(call.values[0] or "") or "SELECT 1 FROM wide")
    seen: list[str] = []
    session = bf.connect(model, cache=None, progress="off", show_values="on")
    columns: dict[str, list[object]] = {f"measure_{n}": [n, n + 1] for n in range(3000)}
    columns["humidity"] = [1, 2]
    columns["station"] = ["Zermatt", "Davos"]
    session.from_pydict(columns, name="wide")
    session.from_pydict({"id": [1]}, name="other")
    draft = session.ask("What is the mean humidity in Zermatt?", rounds=0)
    assert len(seen[0]) < 3 * 4096
    assert "\n  humidity INTEGER" in seen[0]
    assert "\n  station TEXT" in seen[0]
    assert re.search(r"\n  -- and 2,\d\d\d other columns\n\);", seen[0])
    assert re.search(r"and \d+ of 3,002 columns of wide, those", f"and {draft.left_out[14:]}")
    assert "CREATE TABLE other" in seen[0]


def test_a_draft_without_a_key_is_not_run() -> None:
    sql = "SELECT count(*) FROM big a, big b WHERE a.x + b.x > 3"
    session = bf.connect(bf.ScriptedModel(lambda call: sql), cache=None, show_values="on")
    session.from_pydict({"x": list(range(60_000))}, name="big")
    draft = session.ask("How many pairs are there?", rounds=0)
    with pytest.raises(bf.QueryError, match="the query is not run: the query joins a and b"):
        draft.run()
