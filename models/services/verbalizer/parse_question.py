"""Finds the idea in the text of a yes/no question: *negative* in "Is this review negative?", in
"the review is negative" and in "Determine whether the review expresses a negative sentiment."

Small models answer such a question by the tone of the text, whatever the question. At the same
position, they separate *negative* from *positive* very well. So if a question plainly asks for one
known idea (``lexicon``), the words of that idea are scored against those of its opposite, or of all
competing ideas.

Only questions that consist of such a form are recognised. Others use yes and no alone: negations,
alternatives, two ideas, a known word in any other position.
"""

from __future__ import annotations

import re

from blendfusion.models.services.prompts.prompt import reference
from blendfusion.models.services.verbalizer.lexicon import Idea, idea_of
from blendfusion.types import Task


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MOST_WORDS = 12
_MOST_SUBJECT = 6
_MOST_NAMED = 3
_KINDS = _set(
    "text texts message messages review reviews article articles question request sentence comment mail email "
    "tweet post document note letter passage utterance one"
)
"""Nouns for a text; "a positive review" asks for *positive*."""
_BE = _set("is are was were")
_DO = _set("do does did")
_SEEM = _set("sound sounds seem seems feel feels appear appears look looks")
_ARTICLES = _set("a an the any some")
_DEGREES = _set("very clearly really mostly mainly primarily rather quite overall generally")
_FEELINGS = _set("sentiment tone mood opinion feeling feelings emotion emotions attitude")
"""Nouns that have an idea: "a positive tone" asks for *positive*."""
_EXPRESS = _set("express expresses convey conveys")
_HAVE = _set("have has")
_INTRODUCTION = re.compile(
    r"\A(?:please\s+)?(?:determine|check|decide|tell|judge|assess|verify|find\s+out)\s+(?:me\s+)?(?:if|whether)\s+"
)
_SUBJECTS = _set("this that the it these those his her their its")
_FURTHER = _SUBJECTS | _set(
    "a an at in on by from to for with after before into under over near about during as"
)
_MENTION = _set(
    "mention mentions mentioning discuss discusses discussing describe describes describing concern concerns "
    "concerning regarding name names naming"
)
_WITH_PREPOSITION = {
    "about": _set("talk talks talking ask asks asking be") | _KINDS | _SUBJECTS | _BE,
    "for": _set("ask asks asking"),
    "like": _SEEM | _set("read reads"),
    "to": _set("refer refers referring related relate relates relating"),
    "with": _set("deal deals dealing"),
}
"""Prepositions before such a noun that introduce the subject of a text."""
_VERBS = _SEEM | _MENTION | _EXPRESS | _HAVE | _set("talks asks refers relates deals reads")
"""Verbs of a statement, besides forms of *be*."""
_OTHERWISE = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|neither|nor|without|instead|but|except|or|and|than|if|more|less|least|"
    r"most|too|enough|only|both|either|fail\w*|lack\w*)\b|n['’]t\b|[.?!:;]\s*\S"
)
"""Words that change the meaning of a question."""


def question_idea(task: Task) -> Idea | None:
    """The idea of a question, if its form is recognised and the idea is known.

    >>> from blendfusion.types import Constraint
    >>> question_idea(Task("llm_filter", "Is this review negative?", Constraint("boolean"))).against[:2]
    ('positive', 'good')
    >>> question_idea(Task("llm_filter", "Is this review not negative?", Constraint("boolean")))
    """
    whole = task.form == "question" and not (task.aggregate or task.images)
    if task.constraint.kind != "boolean" or not whole:
        return None
    return _idea(reference(task.question, task.columns).strip().lower())


def _idea(question: str) -> Idea | None:
    question = _INTRODUCTION.sub("", question)
    words = re.findall(r"[^\W\d_]+", re.sub(r"-related\b", "", question))
    words = [word for word in words if word not in _DEGREES]
    if not 3 <= len(words) <= _MOST_WORDS or _OTHERWISE.search(question):
        return None
    *before, last = _in_order(words)
    felt = last in _FEELINGS
    if (felt or last in _KINDS) and idea_of(before[-1]) is not None:
        *before, last = before
    idea = idea_of(last)
    if idea is None:
        return None
    while before and before[-1] in _ARTICLES:
        before = before[:-1]
    return idea if _is_statement_verb(before) or _is_about(before, felt=felt) else None


def _in_order(words: list[str]) -> list[str]:
    """A statement in the order of a question: "is the review positive" for "the review is
    positive"."""
    if words[0] not in _SUBJECTS:
        return words
    for place, word in enumerate(words):
        if word in _BE:
            return [word, *words[:place], *words[place + 1 :]]
        if word in _VERBS:
            return ["does", *words]
    return words


def _is_statement_verb(before: list[str]) -> bool:
    """ "Is the customer", "Does the review sound": whether the words before ascribe the idea to a
    subject."""
    first, *subject = before or [""]
    if first in _DO:
        if not subject or subject[-1] not in _SEEM:
            return False
        subject = subject[:-1]
    elif first not in _BE:
        return False
    return 1 <= len(subject) <= _MOST_SUBJECT and _is_plain(subject)


def _is_plain(subject: list[str]) -> bool:
    """ "The customer", "the tone of the review": whether the words are a plain subject."""
    whole, *parts = " ".join(subject).split(" of ")
    plain = [whole.split(), *(part.split() for part in parts)]
    return plain[0][0] in _SUBJECTS and all(
        len(words) <= _MOST_NAMED and not _FURTHER & {*words[1:]} for words in plain
    )


def _is_about(before: list[str], *, felt: bool) -> bool:
    """ "Is this about", "Does the text mention"; "Does it have" with ``felt``: whether the words
    ask for a subject."""
    if len(before) < 2 or before[0] not in _DO | _BE:
        return False
    *_, verb, last = before
    if last in _MENTION | _EXPRESS or (felt and last in _HAVE):
        return True
    return verb in _WITH_PREPOSITION.get(last, ())
