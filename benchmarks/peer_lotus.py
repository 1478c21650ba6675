"""Answers of LOTUS to one question, for bench_side_by_side.py: runs in an environment of its own.

It is given {"url", "question"} and then lines of texts; it prints a line of answers for each. What
LOTUS imports for embeddings (torch, sentence-transformers: gigabytes) is replaced by empty modules:
a filter uses none of it.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter
from unittest.mock import MagicMock

for unused in ("torch", "sentence_transformers"):
    sys.modules[unused] = MagicMock()

MOST_TOKENS = 16
"""As for the others. Its default is 512."""


def main() -> None:
    said = json.loads(sys.argv[1])
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no download of prices
    import lotus
    import pandas as pd
    from lotus.models import LM

    model = LM("openai/model", max_tokens=MOST_TOKENS, api_base=said["url"], api_key="none")
    lotus.settings.configure(lm=model)
    print("ready", flush=True)
    for line in sys.stdin:
        reviews = pd.DataFrame({"text": json.loads(line)})
        model.reset_stats()
        start = perf_counter()
        kept = reviews.sem_filter("{text} " + said["question"])
        seconds = perf_counter() - start
        answers = [row in kept.index for row in reviews.index]
        tokens = model.stats.physical_usage.prompt_tokens
        print(
            "answers "
            + json.dumps({"answers": answers, "seconds": seconds, "prompt_tokens": tokens}),
            flush=True,
        )


if __name__ == "__main__":
    main()
