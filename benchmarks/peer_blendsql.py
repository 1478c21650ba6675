"""Answers of BlendSQL to one question, for bench_side_by_side.py: runs in an environment of its
own.

It is given {"url", "path", "question"} and then lines of texts; it prints a line of answers for
each. With a URL its HTTP client for vLLM asks the server there (llama-cpp-python's takes no grammar
from it and ignores the field); with a path, a subclass of its ModelBase as its documentation
describes them has llama-cpp-python answer in this process, under the grammar that BlendSQL made."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter

import pandas as pd
from blendsql import BlendSQL, config
from blendsql.common.typing import GenerationResult
from blendsql.models import VLLM
from blendsql.models.model_base import ModelBase

MOST_TOKENS = 16
"""Its default of 4,096 lets a small model without a grammar write until the window is full."""


class InProcess(ModelBase):
    """One chat completion of llama-cpp-python an item, under the item's grammar."""

    def __init__(self, path: str) -> None:
        import llama_cpp
        from llguidance import LLTokenizer
        from llguidance.llamacpp import lltokenizer_from_vocab

        super().__init__(Path(path).stem, base_url="http://localhost")
        self.prompted = 0
        self._llama = llama_cpp.Llama(
            path, n_ctx=2048, n_threads=os.cpu_count(), verbose=False, logits_all=False
        )
        vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        self._tokenizer: LLTokenizer = lltokenizer_from_vocab(vocabulary)

    async def generate(self, item, cancel_event=None, max_retries=3):
        self.num_generation_calls += 1
        said = self._llama.create_chat_completion(
            [{"role": "user", "content": item.prompt}],
            max_tokens=MOST_TOKENS,
            temperature=0.0,
            logits_processor=[self._follow(item.grammar)] if item.grammar else None,
        )
        self.prompted += said["usage"]["prompt_tokens"]
        return GenerationResult(
            item.identifier, said["choices"][0]["message"]["content"] or "", completed=True
        )

    def count(self) -> int:
        """The tokens of the prompts since the last time."""
        told, self.prompted = self.prompted, 0
        return told

    def _follow(self, grammar: str):
        """A logits processor that forbids what the grammar does not allow next."""
        import numpy as np
        from llguidance import LLMatcher

        matcher = LLMatcher(self._tokenizer, grammar)
        prompt = 0

        def process(tokens, scores):
            nonlocal prompt
            if not prompt:
                prompt = len(tokens)
            elif not matcher.is_stopped():
                matcher.consume_token(int(tokens[-1]))
            mask = np.unpackbits(
                np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little"
            )[: len(scores)]
            if matcher.is_stopped() or not mask.any():
                mask = np.zeros(len(scores), np.uint8)
                mask[self._llama.token_eos()] = 1
            scores[mask == 0] = -np.inf
            return scores

        return process


class Recorded(VLLM):
    """Its client as it is; the prompts are kept, as the server tells no usage of streams."""

    def __init__(self, url: str) -> None:
        super().__init__("model", base_url=url)
        self.prompts: list[str] = []

    async def generate(self, item, *args, **kwargs):
        self.prompts.append(item.prompt)
        return await super().generate(item, *args, **kwargs)

    def count(self) -> int:
        """The tokens of the prompts since the last time, as the server counts them."""
        import httpx

        url = str(self.client.base_url).rstrip("/").removesuffix("/v1") + "/extras/tokenize/count"
        told = [httpx.post(url, json={"input": prompt}, timeout=60) for prompt in self.prompts]
        self.prompts.clear()
        return sum(answer.json()["count"] for answer in told)


def main() -> None:
    said = json.loads(sys.argv[1])
    config.set_default_max_tokens(MOST_TOKENS)
    loaded = InProcess(said["path"]) if "path" in said else None
    question = said["question"].replace("'", "''")
    call = f"{{{{LLMMap('{question}', reviews.review, return_type='bool')}}}}"
    query = f"SELECT place, {call} AS answer FROM reviews"
    print("ready", flush=True)
    for line in sys.stdin:
        texts = json.loads(line)
        reviews = pd.DataFrame({"place": range(len(texts)), "review": texts})
        # Each execution has an event loop of its own, which its client does not survive.
        model = loaded or Recorded(said["url"])
        blendsql = BlendSQL({"reviews": reviews}, model=model)
        start = perf_counter()
        found = blendsql.execute(query).df()
        seconds = perf_counter() - start
        answers = dict(zip(found["place"].to_list(), found["answer"].to_list(), strict=True))
        tokens = model.count()
        print(
            "answers "
            + json.dumps(
                {
                    "answers": [answers[place] for place in range(len(texts))],
                    "seconds": seconds,
                    "prompt_tokens": tokens,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
