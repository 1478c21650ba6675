"""A function of a maintainer's own, typed."""

import pyarrow as pa

import blendfusion as bf


@bf.ingredient
def llm_mood(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
    return model.ask("What is the mood?", text)


session = bf.connect(bf.ScriptedModel(lambda call: "calm"), cache=None)
session.from_pydict({"text": ["a quiet day", "a quiet day", "rain"]}, name="notes")
frame = session.sql("SELECT llm_mood(text) AS mood, count(*) AS n FROM notes GROUP BY 1")
print(frame.to_pydict(), frame.trace.usage.values, "values")
print(session.sql("SHOW FUNCTIONS LIKE 'llm_mood'").to_pydict()["syntax_example"])
query = "SELECT text FROM notes WHERE llm_filter('Is it wet?', text) AND text LIKE '%r%'"
print(session.sql(query).explain_text(verbose=True, estimates=False))
