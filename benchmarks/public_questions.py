"""Yes/no questions about public data sets, in one's own words. Nothing may be chosen on them.

The labels decide which answer is right, and are never shown to a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from blendfusion.models.services.tuning.bank import BankQuestion, in_order

Record = Mapping[str, Any]


def _column(name: str) -> Callable[[Record], str]:
    return lambda row: str(row[name] or "")


def _titled(title: str, body: str, most: int = 240) -> Callable[[Record], str]:
    def text(row: Record) -> str:
        whole = f"{row[title]}. {row[body] or ''}"
        return whole if len(whole) <= most else whole[:most].rsplit(" ", 1)[0]

    return text


@dataclass(frozen=True)
class _Set:
    file: str
    text: Callable[[Record], str]


SETS = {
    "banking77": _Set("banking77/messages.parquet", _column("text")),
    "clinc150": _Set("clinc150/utterances.parquet", _column("text")),
    "sms_spam": _Set("sms_spam/messages.parquet", _column("text")),
    "review_sentences": _Set("review_sentences/sentences.parquet", _column("text")),
    "ag_news": _Set("ag_news/articles.parquet", _titled("title", "description")),
    "trec_questions": _Set("trec_questions/questions.parquet", _column("text")),
    "sembench_movies": _Set("sembench_movies/reviews.parquet", _column("review_text")),
    "restaurant8k": _Set("restaurant8k/utterances.parquet", _column("text")),
    "rustsec": _Set("rustsec/advisories.parquet", _titled("title", "description")),
    "coffee": _Set("stackexchange_coffee/questions.parquet", _titled("title", "body")),
    "peps": _Set("peps/peps.parquet", _titled("title", "abstract")),
    "tatqa": _Set("tatqa/questions.parquet", _column("question")),
    "wikitablequestions": _Set("wikitablequestions/questions.parquet", _column("question")),
}


def _has(column: str, *labels: str) -> Callable[[Record], bool]:
    return lambda row: row[column] in labels


def _holds(column: str, label: str) -> Callable[[Record], bool]:
    return lambda row: label in (row[column] or ())


def _given(column: str) -> Callable[[Record], bool]:
    return lambda row: row[column] is not None


_CHARGED = (
    "transfer_fee_charged",
    "card_payment_fee_charged",
    "cash_withdrawal_charge",
    "extra_charge_on_statement",
    "top_up_by_card_charge",
    "top_up_by_bank_transfer_charge",
    "exchange_charge",
)
_PENDING = (
    "pending_transfer",
    "pending_top_up",
    "pending_cash_withdrawal",
    "pending_card_payment",
    "card_arrival",
    "transfer_not_received_by_recipient",
    "card_delivery_estimate",
)
_UNKNOWN = (
    "card_payment_not_recognised",
    "direct_debit_payment_not_recognised",
    "cash_withdrawal_not_recognised",
    "compromised_card",
)
QUESTIONS: tuple[tuple[str, str, Callable[[Record], bool]], ...] = (
    ("banking77", "Did the customer lose something, or was it stolen from them?",
     _has("label", "lost_or_stolen_card", "lost_or_stolen_phone")),
    ("banking77", "Does the customer complain about a fee?", _has("label", *_CHARGED)),
    ("banking77", "Is the customer still waiting for something to arrive?", _has("label", *_PENDING)),
    ("banking77", "Does the customer see a payment that they did not make?", _has("label", *_UNKNOWN)),
    ("banking77", "Does this person want their money back?",
     _has("label", "request_refund", "Refund_not_showing_up", "reverted_card_payment?")),
    ("banking77", "Does the writer want to close their account?", _has("label", "terminate_account")),
    ("banking77", "Is this about a forgotten or blocked code?",
     _has("label", "pin_blocked", "passcode_forgotten", "change_pin")),
    ("banking77", "Is the message about exchanging currencies?",
     _has("label", "exchange_rate", "exchange_via_app", "exchange_charge",
          "card_payment_wrong_exchange_rate", "wrong_exchange_rate_for_cash_withdrawal")),
    ("banking77", "Does the customer have to prove who they are?",
     _has("label", "verify_my_identity", "why_verify_identity", "unable_to_verify_identity")),
    ("clinc150", "Does the user want to hear music?",
     _has("intent", "play_music", "next_song", "what_song", "update_playlist")),
    ("clinc150", "Is the user planning a journey?", _has("domain", "travel")),
    ("clinc150", "Is it about preparing or eating food?", _has("domain", "kitchen_and_dining")),
    ("clinc150", "Is the person talking about their car?",
     _has("intent", "tire_change", "tire_pressure", "oil_change_when", "oil_change_how", "mpg",
          "gas", "gas_type", "last_maintenance", "schedule_maintenance", "jump_start")),
    ("clinc150", "Does someone ask the assistant about itself?",
     _has("intent", "are_you_a_bot", "what_is_your_name", "how_old_are_you", "who_made_you",
          "where_are_you_from", "what_are_your_hobbies", "do_you_have_pets", "who_do_you_work_for")),
    ("clinc150", "Should something be added to or removed from a list?",
     _has("intent", "todo_list", "todo_list_update", "shopping_list", "shopping_list_update")),
    ("clinc150", "Is this a matter for the personnel department?", _has("domain", "work")),
    ("clinc150", "Is it about the weather?", _has("intent", "weather")),
    ("sms_spam", "Would most people delete this message without answering?", _has("label", "spam")),
    ("sms_spam", "Is somebody trying to sell something?", _has("label", "spam")),
    ("sms_spam", "Was this text written by a friend or a relative?", _has("label", "ham")),
    ("review_sentences", "Would the writer buy it or go there again?", _has("label", "positive")),
    ("review_sentences", "Is this a complaint?", _has("label", "negative")),
    ("review_sentences", "Is the writer let down?", _has("label", "negative")),
    ("review_sentences", "Does it speak about a meal or the service of waiters?", _has("source", "yelp")),
    ("review_sentences", "Is the writer talking about a movie?", _has("source", "imdb")),
    ("ag_news", "Did this happen in a match or a tournament?", _has("label", "Sports")),
    ("ag_news", "Would an investor want to read this?", _has("label", "Business")),
    ("ag_news", "Is the article about war, diplomacy or a government?", _has("label", "World")),
    ("ag_news", "Is this news about computers, space or other science?", _has("label", "Sci/Tech")),
    ("trec_questions", "Is the answer a date, an amount or another figure?", _has("label", "number")),
    ("trec_questions", "Is somebody's name wanted?", _has("label", "human")),
    ("trec_questions", "Does one need a map to answer it?", _has("label", "location")),
    ("trec_questions", "Does it ask for an explanation or a definition?", _has("label", "description")),
    ("sembench_movies", "Would the critic tell us to see this film?", _has("score_sentiment", "POSITIVE")),
    ("sembench_movies", "Did the critic dislike the film?", _has("score_sentiment", "NEGATIVE")),
    ("restaurant8k", "Does the guest say how many people will come?", _given("people")),
    ("restaurant8k", "Is a time of day given?", _given("time")),
    ("restaurant8k", "Does the guest say on which day they come?", _given("date")),
    ("restaurant8k", "Does somebody tell us their name?", _given("first_name")),
    ("rustsec", "Can memory be read or written wrongly?",
     lambda row: bool({"memory-corruption", "memory-exposure"} & {*(row["categories"] or ())})),
    ("rustsec", "Has the author given up the package?", _has("informational", "unmaintained")),
    ("rustsec", "Could an attacker make the program crash or hang?", _holds("categories", "denial-of-service")),
    ("rustsec", "Was this package published to steal something?", _holds("categories", "malicious")),
    ("coffee", "Does the asker want to make espresso?", _holds("tags", "espresso")),
    ("coffee", "Is the question about taste?", _holds("tags", "flavor")),
    ("peps", "Is this about installing or distributing packages?", _holds("topics", "Packaging")),
    ("peps", "Does the proposal concern type annotations?", _holds("topics", "Typing")),
    ("tatqa", "Must one calculate to answer this?", _has("answer_type", "arithmetic")),
    ("wikitablequestions", "Is it asked how many there are?",
     lambda row: row["answer_type"] == "number"),
)  # fmt: skip
"""The set, the question, and when its answer is yes."""


def texts_of(data: Path, name: str) -> list[str]:
    """The texts of a set, in its order."""
    rows = pq.read_table(data / SETS[name].file).to_pylist()
    return [" ".join(SETS[name].text(row).split()) for row in rows]


def public(data: Path, rows: int) -> Iterator[BankQuestion]:
    """Every question whose set is there, with ``rows`` texts (``in_order``)."""
    read: dict[str, list[dict[str, Any]]] = {}
    for name, question, holds in QUESTIONS:
        file = data / SETS[name].file
        if not file.exists():
            continue
        if name not in read:
            read[name] = pq.read_table(file).to_pylist()
        answers: dict[str, bool] = {}
        for row in read[name]:
            text = " ".join(SETS[name].text(row).split())
            if text:
                answers.setdefault(text, holds(row))
        yield in_order(f"{name}: {question}", name, question, answers, rows)
