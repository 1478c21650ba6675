"""SemBench's programs for BigQuery, run as they are: ``python benchmarks/sembench_queries.py CHECKOUT``.

CHECKOUT is a clone of github.com/SemBench/SemBench. Each query runs with ``dialect="bigquery"`` on small tables of made
values that lie in a schema of the name that the query has (``CREATE SCHEMA movie``). Two things are taken out, which
are no SQL of BigQuery's queries: ``<<placeholders>>`` of the benchmark's runner, and EXTERNAL_OBJECT_TRANSFORM, which
gives files addresses. A query counts if it ends without an error and, where the made rows let it, gives rows."""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

import blendfusion as bf

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
_FILES = re.compile(r"EXTERNAL_OBJECT_TRANSFORM\(\s*TABLE\s+(`[^`]+`)\s*,\s*\[[^\]]*\]\s*\)")
_HOLES = re.compile(r"<<other_params>>|(?<!['\"])<<\w+>>(?!['\"])")


def answer(call: bf.Request) -> object:
    """The same answer to every question of a kind."""
    constraint = call.constraint
    match constraint.kind:
        case "boolean":
            return True
        case "choice":
            return constraint.options[0]
        case "score":
            return constraint.scale[1] if constraint.scale else 1
        case "struct":
            return {field.name: ["drama"] for field in constraint.fields}
        case "list":
            return ["drama"]
        case "integer" | "number":
            return 1
    return "TRUE"


def images(rows: int) -> list[bytes]:
    return [PNG + bytes([i]) for i in range(rows)]


def sounds(rows: int) -> list[bytes]:
    return [WAV + bytes([i]) for i in range(rows)]


def texts(word: str, rows: int) -> list[str]:
    return [f"{word} {i}" for i in range(rows)]


def tables() -> dict[str, dict[str, dict[str, list[object]]]]:
    """Made tables with the columns that the queries read, by schema and name."""
    n, ids = 6, list(range(6))
    cities = ["Lima", "Lima", "Oslo", "Rome", "Rome", "Rome"]
    places = {"City": cities, "StationID": texts("s", n)}
    described = [{"description": {"value": f"a product {i} " * 300}} for i in ids]
    names = ["Apparel", "Footwear", "Accessories"]
    return {
        "movie": {
            "reviews": {
                "id": ["taken_3", "ant_man_and_the_wasp_quantumania"] * 3,
                "reviewId": ids,
                "reviewText": texts("review", n),
            }
        },
        "animals_dataset": {
            "image_data_mm": {"image": images(n), **places},
            "audio_data_mm": {"audio": sounds(n), **places},
        },
        "cars_dataset": {
            "cars": {
                "car_id": ids,
                "vin": texts("v", n),
                "year": [2000 + i for i in ids],
                "transmission": ["Manual", "Automatic"] * 3,
                "fuel_type": ["Electric", "Gas"] * 3,
            },
            "complaints": {"car_id": ids, "complaint_id": ids, "summary": texts("noise", n)},
            "car_mm": {"car_id": ids, "image_id": ids, "image": images(n)},
            "audio_mm": {"car_id": ids, "audio_id": ids, "image": sounds(n)},
        },
        "medical_dataset": {
            "patients": {
                "patient_id": ids,
                "age": [30 + i for i in ids],
                "gender": ["f", "m"] * 3,
                "smoking_history": ["Current", "Never"] * 3,
                "did_family_have_cancer": [0, 1] * 3,
            },
            "symptoms_texts": {"patient_id": ids, "symptom_id": ids, "symptoms": texts("cough", n)},
            "x_ray_mm": {"patient_id": ids, "xray_id": ids, "image": images(n)},
            "skin_cancer_mm": {"patient_id": ids, "image_id": ids, "image": images(n)},
            "audio_mm": {
                "patient_id": ids,
                "audio_id": ids,
                "location": texts("l", n),
                "filtration_type": ["bell", "extended", "diaphragm"] * 2,
                "image": sounds(n),
            },
        },
        "mmqa": {
            "ben_piazza": {"Title": texts("film", n), "Role": ["Bob Whitewood", "x"] * 3},
            "ben_piazza_text_data": {"title": texts("film", n), "text": texts("story", n)},
            "ap_warrior": {"ID": ids, "Track": texts("track", n)},
            "images": {"uri": texts("gs://i", n), "ref": images(n)},
            "lizzy_caplan_text_data": {
                "title": ["Mean Girls", "Cloverfield", "Allied", "Cobweb", "Item 47", "x"],
                "text": texts("plot", n),
            },
            "tampa_international_airport": {
                "Airlines": texts("air", n),
                "Destinations": texts("Frankfurt", n),
            },
        },
        "fashion_product_images": {
            "STYLES_DETAILS": {
                "id": ids,
                "productDisplayName": texts("Adidas", n),
                "productDescriptors": described,
                "price": [100.0 + i for i in ids],
                "baseColour": ["Black", "Blue"] * 3,
                "colour1": [""] * n,
                "colour2": [""] * n,
                "styleImages": [{"default": {"imageURL": f"http://x/{i}.jpg"}} for i in ids],
                "masterCategory": [{"typeName": names[i % 3]} for i in ids],
                "subCategory": [{"typeName": "Topwear"} for _ in ids],
                "articleType": [{"typeName": "Tshirts"} for _ in ids],
            },
            "IMAGE_MAPPING": {
                "filename": [f"{i}.jpg" for i in ids],
                "link": [f"http://x/{i}.jpg" for i in ids],
            },
            "IMAGES": {"uri": [f"gs://b/{i}.jpg" for i in ids], "ref": images(n)},
        },
    }


def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(answer), progress="off", cache=None)
    for schema, listed in tables().items():
        made.sql(f"CREATE SCHEMA {schema}")
        for name, columns in listed.items():
            made.from_arrow(pa.table(columns), name="made")
            made.sql(f'CREATE TABLE {schema}."{name}" AS SELECT * FROM made').collect()
            made.sql("DROP TABLE made")
    return made


def programs(checkout: Path) -> Iterable[tuple[str, str, str]]:
    """(scenario, name, text) of each file with SQL in it."""
    for path in sorted(checkout.glob("files/*/**/bigquery/*.sql")):
        text = path.read_text("utf-8")
        if re.sub(r"--[^\n]*", "", text).strip():
            yield path.relative_to(checkout).parts[1], path.stem, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", help="scenario, or scenario/name")
    given = parser.parse_args()
    ours, runs, total = session(), Counter[str](), Counter[str]()
    for scenario, name, text in programs(given.checkout):
        if given.only and given.only not in (scenario, f"{scenario}/{name}"):
            continue
        total[scenario] += 1
        query = _HOLES.sub("", _FILES.sub(r"\1", text)).strip().rstrip(";")
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = ours.sql(query, dialect="bigquery").to_arrow_table().num_rows
        except Exception as problem:
            said = " | ".join(str(problem).splitlines())[:300]
            print(f"{scenario}/{name}: {type(problem).__name__}: {said}")
            continue
        runs[scenario] += 1
        print(f"{scenario}/{name}: {rows} rows, {time.perf_counter() - began:.1f} s")
    for scenario, count in total.items():
        print(f"{scenario}: {runs[scenario]} of {count}")
    print(f"all: {runs.total()} of {total.total()}")


if __name__ == "__main__":
    main()
