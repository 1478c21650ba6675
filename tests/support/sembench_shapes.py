"""The queries of SemBench's other five scenarios, by shape: small tables of our own, whose texts,
images and recordings state what the queries ask for.

A query is one text with marks for what a model is asked. ``ours`` puts calls in their place,
``gold`` plain SQL over the same statements, so that both have the same shape. A question about a
sound is one about the words of its recording. The movies have their own data: ``sembench``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

PNG, FLAC = b"\x89PNG\r\n\x1a\n", b"fLaC"
MEDIA = {"image": PNG, "audio": FLAC}
"""Columns that are bytes in a session, by how such files begin; in the gold tables, they are texts.
"""

_MARK = re.compile(r"(shows|hears|value|same|topic|list|fields|score|all)!\(([^()]*)\)")
_LABELS = {
    "part": ["ENGINE", "BRAKES", "TIRES"],
    "disease": ["MALARIA", "ACNE", "ALLERGY"],
    "state": ["HEALTHY", "SICK"],
    "kind": ["Dress", "Bottomwear", "Socks", "Topwear"],
}


def ours(query: str) -> str:
    """The query with calls: ``shows!(word, column…)`` and ``hears!`` are yes/no questions,
    ``value!(key, column…)`` asks for a text, ``same!(key, columns…)`` compares what two halves of
    them state. ``~audio`` is the words of a recording beside other columns."""
    return _MARK.sub(lambda mark: _call(mark[1], mark[2]), query)


def gold(query: str) -> str:
    """The query in plain SQL over what the columns state."""
    return _MARK.sub(lambda mark: _plain(mark[1], mark[2]), query)


def _call(kind: str, inside: str) -> str:
    what, columns = _parts(inside)
    columns = [re.sub("^~(.*)", r"llm_transcribe(\1, model => 'heard')", c) for c in columns]
    if kind == "shows":
        return f"llm_filter('Does it show {what}?', {', '.join(columns)})"
    if kind == "hears":
        words = ", ".join(f"llm_transcribe({column}, model => 'heard')" for column in columns)
        return f"llm_filter('Does it show {what}?', {words})"
    if kind == "value":
        return f"llm_text('What is its {what}?', {', '.join(columns)})"
    if kind == "same":
        return f"llm_filter('Is the {what} the same?', {', '.join(columns)})"
    if kind == "topic":
        if len(columns) > 1:
            return f"llm_map('Which is it?', {', '.join(columns)}, options => {_LABELS[what]})"
        return f"llm_classify({columns[0]}, {_LABELS[what]})"
    if kind == "list":
        return f"llm_list('What are its {what}?', {columns[0]})"
    if kind == "fields":
        fields = ", ".join(f"{key} TEXT" for key in what.split())
        return f"llm_vqa('What is it?', {', '.join(columns)}, returns => '{fields}')"
    if kind == "score":
        return f"llm_score('How much do both fit?', {', '.join(columns)})"
    return f"llm_qa('Who is in all of them?', {columns[0]})"


def _plain(kind: str, inside: str) -> str:
    what, columns = _parts(inside.replace("~", ""))
    whole = " || ' ' || ".join(columns)
    if kind in ("shows", "hears"):
        tests = [f"({whole}) LIKE '% {word} %'" for word in what.split(" and ")]
        return f"({' AND '.join(tests)})"
    if kind == "same":
        half = len(columns) // 2
        sides = " || ".join(columns[:half]), " || ".join(columns[half:])
        equal = [f"{_read(key, sides[0])} = {_read(key, sides[1])}" for key in what.split(" and ")]
        return f"({' AND '.join(equal)})"
    if kind in ("value", "topic"):
        return _read(what, whole)
    if kind == "list":
        return f"string_to_array({_read(what, whole)}, '|')"
    if kind == "fields":
        pairs = ", ".join(f"'{key}', " + _read(key, whole) for key in what.split())
        return f"named_struct({pairs})"
    if kind == "score":
        return f"CAST({_read('fit', columns[0])} AS BIGINT)"
    return "min('Caplan')"


def _parts(inside: str) -> tuple[str, list[str]]:
    what, *columns = (part.strip() for part in inside.split(","))
    return what, columns


def _read(key: str, text: str) -> str:
    return f"regexp_match({text}, '{key}=([A-Za-z0-9|]+)')[1]"


def answer(call: bf.Request) -> Value:
    """What the values of a request state."""
    texts = [_stated(value) for value in call.values]
    whole = " ".join(texts)
    shown = re.fullmatch(r"Does it show (.*)\?", call.question)
    if shown is not None:
        return all(f" {word} " in whole for word in shown[1].split(" and "))
    same = re.fullmatch(r"Is the (.*) the same\?", call.question)
    if same is not None:
        half = len(texts) // 2
        sides = " ".join(texts[:half]), " ".join(texts[half:])
        return all(
            _stated_of(key, sides[0]) == _stated_of(key, sides[1]) for key in same[1].split(" and ")
        )
    kind = call.constraint.kind
    if kind == "choice":
        return next(option for option in call.constraint.options if f"={option} " in whole)
    if kind == "struct":
        return {field.name: _stated_of(field.name, whole) for field in call.constraint.fields}
    if kind == "list":
        return list(_stated_of("genres", whole).split("|"))
    if kind in ("score", "integer", "number"):
        return int(_stated_of("fit", whole))
    if call.question == "Who is in all of them?":
        return " ".join(
            set.intersection(*(set(_stated_of("cast", text).split("|")) for text in texts))
        )
    return _stated_of(call.question.removeprefix("What is its ").rstrip("?"), whole)


def _stated(value: Any) -> str:
    text = str(value)
    try:
        return bf.image_bytes(value).removeprefix(PNG).decode()
    except (KeyError, ValueError, bf.BlendFusionError):
        return text


def _stated_of(key: str, text: str) -> str:
    found = re.search(rf"{key}=([A-Za-z0-9|]+)", text)
    assert found is not None, (key, text)
    return found[1]


def heard(call: bf.Request) -> Value:
    """The words of a recording."""
    return bf.image_bytes(call.values[0]).removeprefix(FLAC).decode()


@dataclass(frozen=True, slots=True)
class Shape:
    """A query. ``any_rows``: as many as its LIMIT of those that fit will do."""

    name: str
    query: str

    @property
    def any_rows(self) -> bool:
        return " LIMIT " in self.query and " ORDER BY " not in self.query


def session_and_gold() -> tuple[bf.Session, bf.ScriptedModel, SessionContext]:
    """The tables in a session with its model, and in a plain context."""
    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None, progress="off")
    session.register_model("heard", bf.ScriptedModel(heard))
    plain = SessionContext()
    for name, columns in TABLES.items():
        table = pa.table(columns)
        plain.from_arrow(table, name=name)
        for at, column in enumerate(table.column_names):
            if column in MEDIA:
                head = MEDIA[column]
                made = [None if text is None else head + text.encode() for text in columns[column]]
                table = table.set_column(at, column, pa.array(made, pa.binary()))
        session.from_arrow(table, name=name)
    return session, model, plain


def _looks(*words: str) -> list[str]:
    return [f" {word} " for word in words]


TABLES: dict[str, dict[str, list[Any]]] = {
    "image_data": {
        "city": ["Nairobi", "Nairobi", "Arusha", "Arusha", "Kampala", "Kampala", "Nairobi", "Kigali"],
        "station": [1, 2, 1, 1, 3, 3, 1, 4],
        "image": _looks("zebra 1", "zebra impala", "impala", "elephant", "monkey", "zebra monkey", "zebra 2", "monkey"),
    },
    "audio_data": {
        "city": ["Nairobi", "Arusha", "Kampala", "Kampala", "Kigali"],
        "audio": _looks("elephant 1", "monkey bird", "monkey", "elephant 2", "bird"),
    },
    "cars": {
        "car_id": [1, 2, 3, 4, 5, 6],
        "vin": list("ABCDEF"),
        "year": [2010, 2015, 2020, 2018, 2012, 2021],
        "fuel_type": ["Electric", "Petrol", "Electric", "Diesel", "Electric", "Petrol"],
        "transmission": ["Manual", "Automatic", "Manual", "Automatic", "Automatic", "Manual"],
    },
    "car_images": {
        "car_id": [1, 2, 3, 4, 6],
        "image_id": [11, 12, 13, 14, 16],
        "image": _looks("intact 1", "damaged dented", "damaged puncture scratches", "damaged torn", "intact 2"),
    },
    "car_audio": {
        "car_id": [1, 2, 3, 4, 5],
        "audio_id": [21, 22, 23, 24, 25],
        "audio": _looks("dead_battery", "damaged brakes", "dead_battery two", "damaged bad_ignition", "fine"),
    },
    "complaints": {
        "car_id": [1, 2, 3, 4, 5, 6],
        "complaint_id": [31, 32, 33, 34, 35, 36],
        "summary": [f" {text} part={part} " for text, part in [
            ("crash", "BRAKES"), ("engine stalls", "ENGINE"), ("electrical fault", "TIRES"),
            ("crash fire", "BRAKES"), ("engine smoke", "ENGINE"), ("worn", "TIRES")]],
    },
    "patients": {
        "patient_id": [1, 2, 3, 4, 5, 6],
        "age": [20, 30, 40, 50, 60, 70],
        "smoking_history": ["Current", "Never", "Current", "Former", "Never", "Current"],
        "family_cancer": [1, 1, 0, 1, 0, 1],
    },
    "symptoms": {
        "patient_id": [1, 2, 3, 4],
        "symptom_id": [41, 42, 43, 44],
        "symptoms": [f" {text} disease={disease} " for text, disease in [
            ("allergy sneezes", "ALLERGY"), ("acne sick", "ACNE"), ("acne sick fever", "MALARIA"), ("well", "ALLERGY")]],
    },
    "x_rays": {
        "patient_id": [1, 2, 3, 5, 6],
        "xray_id": [51, 52, 53, 55, 56],
        "image": _looks("sick shadow state=SICK", "healthy one state=HEALTHY", "sick spot state=SICK", "healthy two", "sick three"),
    },
    "moles": {
        "patient_id": [1, 2, 4, 6],
        "image": _looks("malignant sick", "benign", "malignant sick dark", "benign healthy"),
    },
    "lungs": {
        "patient_id": [1, 2, 3, 4, 5],
        "audio": _looks("sick rattle", "healthy breath", "sick wheeze", "healthy calm", "sick cough"),
    },
    "lungs_filtered": {
        "patient_id": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "location": ["left"] * 9,
        "filtration": ["bell", "extended", "diaphragm"] * 3,
        "audio": _looks("sick a", "d", "g", "calm b", "e", "h", "calm c", "f", "sick i"),
    },
    "piazza": {"title": ["Bears", "Fog"], "role": ["Bob", "Ann"]},
    "films": {
        "title": ["Bears", "Fog", "Item", "Night"],
        "text": [f" {g.replace('|', ' ')} genres={g} director={d} cast={c} " for g, d, c in [
            ("comedy", "Ritchie", "Caplan|Piazza"), ("horror", "Reeves", "Caplan|Lee"),
            ("comedy|scifi", "Doe", "Lee|Caplan"), ("comedy|romance", "Roe", "Caplan")]],
    },
    "races": {"id": [0, 1, 2], "track": ["track=Oak ", "track=Elm ", "track=Oak "]},
    "logos": {
        "uri": ["a.png", "b.png", "c.png"],
        "image": [" track=Oak color=blue ", " airline=Delta track=None color=red ", " airline=Swiss track=None color=white "],
    },
    "airport": {
        "airline": ["airline=Delta ", "airline=Swiss ", "airline=Local "],
        "destinations": [" Frankfurt Germany Europe ", " Zurich Europe ", " Boston "],
    },
    "styles": {
        "id": [1, 2, 3, 4, 5, 6, 7],
        "price": [400, 300, 900, 100, 450, 120, 700],
        "base_colour": ["Black", "Black", "Black", "White", "Black", "White", "Pink"],
        "master": ["Accessories", "Footwear", "Apparel", "Apparel", "Apparel", "Apparel", "Apparel"],
        "sub": ["Bags", "Shoes", "Topwear", "Socks", "Bottomwear", "Socks", "Saree"],
        "descr": [f" {text} brand={brand} category={category} kind={kind} " for text, brand, category, kind in [
            ("backpack bag", "Reebok", "bags", "Topwear"), ("feet long", "Puma", "shoes", "Topwear"),
            ("upper", "Puma", "shirts", "Topwear"), ("socks", "Nike", "socks", "Socks"),
            ("lower", "Puma", "pants", "Bottomwear"), ("socks more", "Nike", "socks", "Socks"),
            ("dress", "Zara", "dresses", "Dress")]],
    },
    "style_images": {
        "id": [1, 2, 3, 4, 5, 6, 7],
        "image": [f" {text} colour={colour} category={category} brand={brand} kind={kind} fit={fit} "
                  for text, colour, category, brand, kind, fit in [
            ("bag black", "black", "bags", "Reebok", "Topwear", 1), ("feet black yellow silver", "black", "shoes", "Puma", "Topwear", 2),
            ("upper black running", "black", "shirts", "Puma", "Topwear", 3), ("socks white", "white", "socks", "Nike", "Socks", 4),
            ("lower black", "black", "pants", "Puma", "Bottomwear", 5), ("socks white long", "white", "socks", "Nike", "Socks", 2),
            ("dress pink", "pink", "dresses", "Zara", "Dress", 7)]],
    },
}  # fmt: skip

_TWO = """two AS (
    SELECT p.car_id, p.year, s.complaint_id, s.summary, x.image_id, x.image, a.audio_id, a.audio FROM cars p
    LEFT JOIN car_images x ON p.car_id = x.car_id LEFT JOIN car_audio a ON p.car_id = a.car_id
    LEFT JOIN complaints s ON p.car_id = s.car_id
    WHERE (a.audio_id IS NOT NULL AND s.complaint_id IS NOT NULL)
       OR (x.image_id IS NOT NULL AND s.complaint_id IS NOT NULL)
       OR (x.image_id IS NOT NULL AND a.audio_id IS NOT NULL))"""
_BY_MODALITY = """SELECT * FROM (SELECT t.{key}, t.{text}, t.{image}, t.{audio},
      CASE WHEN a.{key} IS NOT NULL THEN 1 WHEN t.{audio} IS NOT NULL THEN 0 END AS by_audio,
      CASE WHEN s.{key} IS NOT NULL THEN 1 WHEN t.{text} IS NOT NULL THEN 0 END AS by_text,
      CASE WHEN x.{key} IS NOT NULL THEN 1 WHEN t.{image} IS NOT NULL THEN 0 END AS by_image
    FROM two t LEFT JOIN sick_audio a ON t.{key} = a.{key} LEFT JOIN sick_text s ON t.{key} = s.{key}
    LEFT JOIN sick_image x ON t.{key} = x.{key})
  WHERE (by_audio = 1 OR by_text = 1 OR by_image = 1) AND (by_audio = 0 OR by_text = 0 OR by_image = 0)"""
_PATIENTS = """lungs_three AS (
    SELECT patient_id, location, max(CASE WHEN filtration = 'bell' THEN audio END) AS bell,
      max(CASE WHEN filtration = 'extended' THEN audio END) AS extended,
      max(CASE WHEN filtration = 'diaphragm' THEN audio END) AS diaphragm
    FROM lungs_filtered GROUP BY patient_id, location),
  two AS (
    SELECT p.patient_id, s.symptom_id, s.symptoms, x.xray_id, x.image, a.patient_id AS audio_id, a.bell, a.extended, a.diaphragm
    FROM patients p LEFT JOIN lungs_three a ON p.patient_id = a.patient_id
    LEFT JOIN symptoms s ON p.patient_id = s.patient_id LEFT JOIN x_rays x ON p.patient_id = x.patient_id
    WHERE (a.bell IS NOT NULL AND s.symptom_id IS NOT NULL) OR (x.xray_id IS NOT NULL AND s.symptom_id IS NOT NULL)
       OR (x.xray_id IS NOT NULL AND a.bell IS NOT NULL))"""
_SHOP = "styles s JOIN style_images i ON s.id = i.id"
_APPAREL = "s.master = 'Apparel' AND s.sub NOT IN ('Saree', 'Loungewear')"
_ELEPHANTS = "SELECT city FROM image_data WHERE shows!(elephant, image) UNION ALL SELECT city FROM audio_data WHERE hears!(elephant, audio)"
_MONKEYS = "SELECT city FROM image_data WHERE shows!(monkey, image) UNION ALL SELECT city FROM audio_data WHERE hears!(monkey, audio)"

_TEXTS: dict[str, list[str]] = {
    "animals": [
        "SELECT count(*) AS n FROM image_data WHERE shows!(zebra, image)",
        "SELECT count(*) AS n FROM audio_data WHERE hears!(elephant, audio)",
        "SELECT city FROM image_data WHERE shows!(zebra, image) GROUP BY city ORDER BY count(*) DESC LIMIT 1",
        "SELECT city FROM audio_data WHERE hears!(monkey, audio) AND city <> 'Arusha' GROUP BY city ORDER BY count(*) DESC LIMIT 1",
        f"SELECT DISTINCT city FROM ({_ELEPHANTS})",
        "SELECT DISTINCT i.city FROM image_data i WHERE shows!(monkey, i.image) AND NOT EXISTS "
        "(SELECT 1 FROM audio_data a WHERE a.city = i.city AND hears!(monkey, a.audio))",
        "SELECT DISTINCT city FROM image_data WHERE shows!(zebra, image) INTERSECT SELECT DISTINCT city FROM image_data WHERE shows!(impala, image)",
        f"SELECT DISTINCT city FROM ({_ELEPHANTS}) INTERSECT SELECT DISTINCT city FROM ({_MONKEYS})",
        "SELECT DISTINCT city FROM image_data WHERE shows!(monkey, image) INTERSECT SELECT city FROM audio_data WHERE hears!(monkey, audio)",
        "SELECT city, station FROM image_data WHERE shows!(zebra, image) GROUP BY city, station ORDER BY count(*) DESC LIMIT 1",
    ],
    "cars": [
        "SELECT DISTINCT car_id FROM complaints WHERE shows!(crash, summary)",
        "SELECT DISTINCT c.car_id FROM cars c JOIN car_audio a ON c.car_id = a.car_id WHERE c.fuel_type = 'Electric' AND hears!(dead_battery, a.audio)",
        "SELECT p.vin FROM cars p JOIN car_images x ON p.car_id = x.car_id WHERE p.transmission = 'Manual' AND shows!(intact, x.image) LIMIT 1",
        "SELECT 2026 - avg(c.year) AS age FROM cars c JOIN complaints s ON c.car_id = s.car_id WHERE shows!(engine, s.summary)",
        "SELECT transmission, count(*) AS n FROM (SELECT DISTINCT p.car_id, p.transmission FROM cars p, car_audio a, car_images x "
        "WHERE p.transmission = 'Automatic' AND p.car_id = x.car_id AND p.car_id = a.car_id AND hears!(damaged, a.audio) "
        "AND shows!(damaged, x.image)) GROUP BY transmission",
        f"WITH {_TWO}, sick_audio AS (SELECT DISTINCT car_id FROM two WHERE audio_id IS NOT NULL AND hears!(damaged, audio)), "
        "sick_image AS (SELECT DISTINCT car_id FROM two WHERE image_id IS NOT NULL AND shows!(damaged, image)), "
        "sick_text AS (SELECT DISTINCT car_id FROM two WHERE complaint_id IS NOT NULL AND shows!(fire, summary)) "
        + _BY_MODALITY.format(key="car_id", text="complaint_id", image="image_id", audio="audio_id"),
        "SELECT p.car_id FROM cars p JOIN car_audio a ON p.car_id = a.car_id WHERE hears!(brakes, a.audio) UNION "
        "SELECT p.car_id FROM cars p JOIN complaints s ON p.car_id = s.car_id WHERE shows!(electrical, s.summary) UNION "
        "SELECT p.car_id FROM cars p JOIN car_images x ON p.car_id = x.car_id WHERE shows!(dented, x.image)",
        "SELECT p.car_id FROM car_images x JOIN cars p ON p.car_id = x.car_id WHERE shows!(puncture and scratches, x.image) LIMIT 100",
        "SELECT DISTINCT p.car_id FROM car_images x, cars p, car_audio a WHERE p.car_id = x.car_id AND p.car_id = a.car_id "
        "AND shows!(torn and bad_ignition, x.image, ~a.audio)",
        "SELECT p.car_id, topic!(part, c.summary) AS part FROM cars p JOIN complaints c ON p.car_id = c.car_id",
    ],
    "medical": [
        "SELECT p.patient_id FROM patients p JOIN symptoms s ON p.patient_id = s.patient_id WHERE shows!(allergy, s.symptoms)",
        "SELECT DISTINCT p.patient_id FROM patients p JOIN lungs a ON p.patient_id = a.patient_id WHERE p.smoking_history <> 'Current' AND hears!(healthy, a.audio)",
        "SELECT p.age, p.patient_id FROM patients p JOIN x_rays x ON p.patient_id = x.patient_id WHERE p.family_cancer = 1 AND shows!(sick, x.image) LIMIT 1",
        "SELECT avg(p.age) AS age FROM patients p JOIN symptoms s ON p.patient_id = s.patient_id WHERE shows!(acne, s.symptoms)",
        "SELECT smoking_history, count(*) AS n FROM (SELECT DISTINCT p.patient_id, p.smoking_history FROM patients p, lungs a, x_rays x "
        "WHERE p.patient_id = x.patient_id AND p.patient_id = a.patient_id AND p.smoking_history = 'Current' "
        "AND hears!(sick, a.audio) AND shows!(sick, x.image)) GROUP BY smoking_history",
        f"WITH {_PATIENTS}, sick_audio AS (SELECT DISTINCT patient_id FROM two WHERE audio_id IS NOT NULL AND hears!(sick, bell, extended, diaphragm)), "
        "sick_image AS (SELECT DISTINCT patient_id FROM two WHERE xray_id IS NOT NULL AND shows!(sick, image)), "
        "sick_text AS (SELECT DISTINCT patient_id FROM two WHERE symptom_id IS NOT NULL AND shows!(sick, symptoms)) "
        + _BY_MODALITY.format(key="patient_id", text="symptom_id", image="xray_id", audio="audio_id"),
        "SELECT p.patient_id FROM patients p JOIN lungs a ON p.patient_id = a.patient_id WHERE hears!(sick, a.audio) UNION "
        "SELECT p.patient_id FROM patients p JOIN symptoms s ON p.patient_id = s.patient_id WHERE shows!(sick, s.symptoms) UNION "
        "SELECT p.patient_id FROM patients p JOIN x_rays x ON p.patient_id = x.patient_id WHERE shows!(sick, x.image) UNION "
        "SELECT p.patient_id FROM patients p JOIN moles m ON p.patient_id = m.patient_id WHERE shows!(malignant, m.image)",
        "SELECT p.patient_id FROM moles m JOIN patients p ON p.patient_id = m.patient_id WHERE p.family_cancer = 1 AND shows!(malignant, m.image) LIMIT 100",
        "SELECT p.patient_id FROM moles m, patients p, x_rays x WHERE p.patient_id = m.patient_id AND p.patient_id = x.patient_id "
        "AND shows!(malignant and shadow, m.image, x.image)",
        "SELECT p.patient_id, topic!(disease, s.symptoms) AS disease FROM patients p JOIN symptoms s ON p.patient_id = s.patient_id",
        "SELECT p.patient_id, topic!(state, x.image, s.symptoms) AS state FROM patients p, symptoms s, x_rays x "
        "WHERE p.patient_id = s.patient_id AND p.patient_id = x.patient_id",
    ],
    "mmqa": [
        "SELECT d.director FROM piazza p JOIN (SELECT title, value!(director, text) AS director FROM films) d ON p.title = d.title WHERE p.role = 'Bob'",
        "SELECT t.id, i.uri FROM races t, logos i WHERE same!(track, t.track, i.image)",
        "SELECT id, uri, value!(color, image) AS color FROM (SELECT t.id, i.uri, i.image FROM races t, logos i WHERE same!(track, t.track, i.image))",
        *(f"SELECT title FROM films WHERE shows!({genre}, title, text)" for genre in
          ["comedy", "scifi", "romance", "horror", "heist", "comedy and romance", "comedy and scifi"]),
        "SELECT genre, string_agg(title, ', ' ORDER BY title) AS films FROM (SELECT title, unnest(genres) AS genre FROM "
        "(SELECT title, list!(genres, text) AS genres FROM films WHERE title IN ('Bears', 'Fog', 'Item', 'Night'))) GROUP BY genre ORDER BY genre",
        "SELECT all!(cast, text) AS actor FROM films WHERE title IN ('Bears', 'Fog', 'Item', 'Night')",
        *(f"SELECT airline FROM airport WHERE shows!({place}, destinations, airline)" for place in ["Frankfurt", "Germany", "Europe"]),
        "SELECT t.airline, i.uri FROM airport t, logos i WHERE i.uri <> 'a.png' AND same!(airline, t.airline, i.image)",
    ],
    "ecomm": [
        "SELECT id FROM styles WHERE shows!(backpack, descr)",
        "SELECT id FROM style_images WHERE shows!(yellow and silver, image)",
        "SELECT id, value!(brand, descr) AS brand FROM styles",
        f"SELECT i.id, value!(colour, i.image) AS colour FROM {_SHOP} WHERE s.base_colour IN ('Black', 'White')",
        f"SELECT s.id, topic!(kind, s.descr) AS kind FROM styles s WHERE {_APPAREL}",
        f"SELECT i.id, topic!(kind, i.image) AS kind FROM {_SHOP} WHERE {_APPAREL}",
        "SELECT p.id || '-' || q.id AS ids FROM styles p JOIN styles q ON same!(brand and category, p.descr, q.descr) WHERE p.price <= 500 AND q.price <= 500",
        "SELECT s.id AS style, i.id AS image FROM styles s JOIN style_images i ON same!(brand and category, s.descr, i.image) WHERE length(s.descr) >= 52",
        "WITH some AS (SELECT i.* FROM styles s JOIN style_images i ON s.id = i.id WHERE s.base_colour IN ('Black', 'White') AND s.price < 800) "
        "SELECT p.id AS a, q.id AS b FROM some p LEFT JOIN some q ON p.id <> q.id AND same!(category and colour, p.image, q.image)",
        f"WITH items AS (SELECT i.id, s.descr, i.image FROM {_SHOP} WHERE s.base_colour = 'Black' AND s.price <= 1000) "
        "SELECT a.id || '-' || b.id || '-' || c.id AS ids FROM items a, items b, items c WHERE shows!(feet, a.image) AND shows!(lower, b.image) "
        "AND shows!(upper, c.image) AND same!(colour and brand, a.descr, a.image, b.descr, b.image) AND same!(colour and brand, b.descr, b.image, c.descr, c.image)",
        f"WITH items AS (SELECT i.id, s.price, s.descr, i.image FROM {_SHOP}) "
        "SELECT a.id || '-' || b.id || '-' || c.id || '-' || d.id AS ids FROM items a, items b, items c, items d WHERE d.price <= 500 "
        "AND shows!(feet and black, a.descr, a.image) AND shows!(lower and black, b.descr, b.image) AND shows!(upper and black, c.descr, c.image) "
        "AND shows!(long, d.descr, d.image) AND same!(brand, a.descr, a.image, b.descr, b.image) AND same!(brand, b.descr, b.image, c.descr, c.image) "
        "AND same!(brand, c.descr, c.image, d.descr, d.image)",
        f"SELECT s.id, fields!(brand category, s.descr, i.image) AS fields FROM {_SHOP} WHERE s.master IN ('Accessories', 'Apparel', 'Footwear') AND shows!(brand=Puma, s.descr)",
        f"SELECT s.id FROM {_SHOP} WHERE shows!(running and upper, i.image, s.descr)",
        "SELECT style, image FROM (SELECT s.id AS style, i.id AS image, row_number() OVER (PARTITION BY s.id ORDER BY score!(fit, i.image, s.descr)) AS place "
        "FROM styles s JOIN style_images i ON same!(brand and category, s.descr, i.image) WHERE s.price < 130 AND shows!(socks and white, i.image)) WHERE place = 1",
    ],
}  # fmt: skip
SHAPES = [
    Shape(f"{scenario} {number}", text)
    for scenario, texts in _TEXTS.items()
    for number, text in enumerate(texts, 1)
]
"""Ten queries each of animals and cars, eleven of medical, sixteen of mmqa (1, 2a, 2b, 3a to 3g, 4, 5, 6a to
6c, 7), fourteen of ecomm, in the benchmark's order."""
