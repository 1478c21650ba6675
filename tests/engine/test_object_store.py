"""A database of LanceDB, and a store of answers, on an object store: S3's API on the loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.errors import QueryError

lancedb = pytest.importorskip("lancedb", reason="needs the extra 'dev'")
moto = pytest.importorskip("moto.server", reason="pip install 'moto[s3]' flask flask-cors boto3")
boto3 = pytest.importorskip("boto3", reason="pip install 'moto[s3]' flask flask-cors boto3")

KEYS = {"aws_access_key_id": "reader", "aws_secret_access_key": "not-to-be-shown"}
WORDS = ("gravel bike", "city bike", "bread")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HTTP_PROXY", "http_proxy", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=url, region_name="us-east-1", **KEYS).create_bucket(
        Bucket="bucket"
    )
    yield url
    server.stop()


def test_a_database_of_lancedb(endpoint: str) -> None:
    options = {**KEYS, "aws_endpoint": endpoint, "aws_region": "us-east-1", "allow_http": "true"}
    from lancedb.index import FTS

    database = lancedb.connect("s3://bucket/shop", storage_options=options)
    rows = pa.table({"id": [1, 2, 3], "body": WORDS})
    database.create_table("items", rows).create_index("body", config=FTS())
    model = bf.ScriptedModel(lambda call: "bike" in call.values[0])
    with bf.connect(model, cache=None) as session:
        assert session.attach_lancedb("s3://bucket/shop", storage_options=options) == ("items",)
        frame = session.sql("SELECT id FROM items WHERE id > 1 AND llm_filter('Bike?', body)")
        assert frame.to_pydict() == {"id": [2]}
        assert frame.trace.usage.values == 2
        found = session.sql("SELECT id FROM llm_search('items', 'bike') ORDER BY id")
        assert found.to_pydict() == {"id": [1, 2]}
        assert "not-to-be-shown" not in frame.explain_text()
        with pytest.raises(QueryError) as raised:
            session.register_lance("other", "s3://bucket/none.lance", storage_options=options)
        assert "not-to-be-shown" not in str(raised.value)


def test_a_store_of_answers(endpoint: str) -> None:
    host = endpoint.removeprefix("http://")
    cache = (
        f"s3://reader:secret@bucket/answers?scheme=http&endpoint_override={host}&region=us-east-1"
    )
    asked = []
    for _ in range(2):
        model = bf.ScriptedModel(lambda call: "bike" in call.values[0], fingerprint="bikes")
        with bf.connect(model, cache=cache) as session:
            session.from_pydict({"body": list(WORDS)}, name="items")
            frame = session.sql("SELECT body FROM items WHERE llm_filter('Bike?', body)")
            assert frame.to_pydict() == {"body": list(WORDS[:2])}
            asked.append((frame.trace.usage.values, frame.trace.usage.cached))
    assert asked == [(3, 0), (0, 3)]
