"""The HTML report of a trace: one self-contained page without scripts and network access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from importlib.metadata import version
from math import exp
from typing import TYPE_CHECKING

from blendfusion.models.protocol.events import digest_of
from blendfusion.models.services.prompts.prompt import render
from blendfusion.options import Options
from blendfusion.planner.explain.plan_text import changed_trees
from blendfusion.redaction import Redaction
from blendfusion.run.observe.progress import count_noun, readings_text
from blendfusion.run.reports.html import Html, cut, join_html, style, table, tag
from blendfusion.services.pages.answer_samples import TaskSample, samples
from blendfusion.services.pages.html_plan import plan_section

if TYPE_CHECKING:
    from blendfusion.planner.driver import Rewrite
    from blendfusion.run.reports.run_record import Run
    from blendfusion.run.reports.trace import Trace

_VALUE = 400
"""Maximum characters of a value or an answer."""
_TEXT = 4_000
"""Maximum characters of a query or a prompt."""
_TASKS = 50
_REASONS = 12
_ANSWERS = 8
_LINES = 60
"""Maximum lines of a plan before or after a rule."""
_ROWS = 6
"""Maximum values of a request; a context of an aggregate may have thousands."""


def page_of(trace: Trace, redaction: Redaction) -> str:
    """The whole page, of bounded size; values go through ``redaction``."""
    title = "BlendFusion trace" if trace.run is None else f"BlendFusion trace {trace.run.id}"
    sections = _sections(trace, _Display(redaction))
    links = [tag("li", tag("a", name, href=f"#{key}")) for key, name, _ in sections]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        tag("title", title),
        style(),
    )
    body = tag(
        "body",
        tag("header", *_heading(trace), tag("nav", tag("ul", *links), aria_label="Sections")),
        tag("main", *(_section(*section) for section in sections)),
        tag("footer", f"Written by BlendFusion {version('blendfusion')}."),
        class_="bf",
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def fragment_of(trace: Trace) -> str:
    """The heading, the totals and the plan, for a notebook."""
    parts = [*_heading(trace, name="h3"), totals(trace)]
    if trace.run is not None:
        parts.append(plan_section(trace.run, trace.became_of))
    return str(tag("div", style(), *parts, class_="bf"))


def _section(key: str, name: str, content: Html) -> Html:
    return tag("section", tag("h2", name, id=key), content, aria_labelledby=key)


def _sections(trace: Trace, show: _Display) -> list[tuple[str, str, Html]]:
    run = trace.run
    answered = samples(trace.batches)
    made = [("totals", "Totals", join_html([totals(trace), *_models(trace), *_cascades(trace)]))]
    if run is not None and run.query:
        made.append(("query", "Query", tag("pre", cut(run.query, _TEXT), tabindex="0")))
    if run is not None:
        made.append(("plan", "Plan", plan_section(run, trace.became_of)))
    failed = [sample for sample in answered if sample.failures]
    if failed:
        made.append(("errors", "Errors", _errors(failed, show)))
    if answered:
        made.append(("calls", "Calls", _calls(answered, run, show, trace.left_out)))
    if run is not None and run.plan is not None and run.plan.rewrites:
        made.append(("rules", "Rules of the planner", _rewrites(run.plan.rewrites)))
    if run is not None:
        made.append(("settings", "Settings", _settings(trace, run)))
    return made


def _heading(trace: Trace, name: str = "h1") -> list[Html]:
    run = trace.run
    if run is None:
        return [tag(name, "Nothing has run"), tag("p", "This trace is empty.", class_="mute")]
    ended = {
        "running": "still running",
        "done": f"done in {_seconds(run.seconds)}",
        "closed": f"closed by its reader after {_seconds(run.seconds)}",
        "failed": f"failed after {_seconds(run.seconds)}: {run.error}",
    }[run.outcome]
    model = ", ".join(run.models) or "no model was asked"
    started = f"{run.started:%Y-%m-%d %H:%M:%S} UTC"
    bad = "bad" if run.outcome == "failed" else None
    facts = tag("p", tag("span", ended, class_=bad), f" · {model} · {started}", class_="mute")
    return [tag(name, "Query ", tag("code", run.id)), facts]


def totals(trace: Trace) -> Html:
    """The questions and the spending of the run."""
    usage, run = trace.usage, trace.run
    batches = readings_text(usage).strip() or f"in {count_noun(usage.calls, 'call')}"
    evaluated = f"{usage.evaluated_tokens:,} evaluated"
    tiles: list[tuple[str, str, str]] = [
        ("Values asked", f"{usage.values:,}", batches),
        ("From the cache", f"{usage.cached:,}", ""),
        ("Failed", f"{usage.failed:,}", ""),
        ("Prompt tokens", f"{usage.prompt_tokens:,}", evaluated),
        ("Answer tokens", f"{usage.completion_tokens:,}", ""),
        ("In the model", _seconds(usage.seconds), ""),
    ]
    if trace.cut_off:
        tiles.insert(3, ("Cut off", f"{trace.cut_off:,}", "at max_tokens"))
    if trace.unsure:
        tiles.insert(
            3, ("Withheld", f"{trace.unsure:,}", "less probable than wanted, or not in the text")
        )
    if trace.vectors.embedded:
        took = trace.vectors.usage
        requests = f"in {count_noun(took.calls, 'request')}, {took.prompt_tokens:,} tokens"
        tiles.append(
            ("Texts embedded", f"{trace.vectors.embedded:,}", requests if took.calls else "")
        )
    if run is not None:
        tiles.append(("In all", _seconds(run.seconds), ""))
    if trace.cost:
        tiles.append(("Cost", f"{trace.cost:.4g}", "by the session's prices"))
    return tag("dl", *map(_tile, tiles), class_="totals")


def _models(trace: Trace) -> list[Html]:
    """The questions of each model, if there were several."""
    if not any(a.model or a.spent for _, _, answers in trace.batches for a in answers):
        return []
    rows = [
        [name, f"{u.values:,}", f"{u.failed:,}", f"{u.prompt_tokens:,}", f"{u.completion_tokens:,}"]
        for name, u in trace.by_model.items()
    ]
    heads = ["Model", "Values", "Failed", "Prompt tokens", "Answer tokens"]
    return [table("By model", heads, rows, kinds=["wide", "n", "n", "n", "n"])]


def _cascades(trace: Trace) -> list[Html]:
    """The decisions of small models."""
    rows = [
        [
            tag("code", cut(call.text, _VALUE)),
            str(outcome.targets),
            f"{outcome.values:,}",
            f"{outcome.values - outcome.to_large:,}",
            f"{outcome.to_large:,}",
            f"{outcome.sampled:,}",
            outcome.why,
        ]
        for call, outcome in trace.cascades.items()
    ]
    heads = ["Call", "Promised", "Values", "Decided by smaller models", "Asked of the large one"]
    kinds = ["wide", "wide", "n", "n", "n", "n", "wide"]
    more = ["As a sample", "Which"]
    return [table("Cascades", [*heads, *more], rows, kinds=kinds)] if rows else []


def _tile(tile: tuple[str, str, str]) -> Html:
    name, number, note = tile
    bad = "bad" if name == "Failed" and number != "0" else None
    small = [tag("small", note)] if note else []
    return tag("div", tag("dt", name), tag("dd", tag("span", number, class_=bad), *small))


# --- what was asked and answered -----------------------------------------------------------------


class _Display:
    """The display of values and answers on the page."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._of_values = replace(redaction, show="off" if redaction.show == "off" else "on")

    def value(self, text: str | None, longest: int = _VALUE) -> Html:
        if text is None:
            return tag("span", "NULL", class_="mute")
        return tag("bdi", cut(self._redaction.page(text), longest))

    def values(self, values: Sequence[str | None]) -> Html:
        rows: list[str] = []
        for i, value in enumerate(values[:_ROWS]):
            rows += ([tag("br")] if i else []) + [self.value(value)]
        if len(values) > _ROWS:
            rows += [tag("span", f"and {len(values) - _ROWS:,} more", class_="note")]
        return join_html(rows)

    def reason(self, text: str) -> str:
        return cut(self._of_values.reason(text), _VALUE)


def _calls(answered: Sequence[TaskSample], run: Run | None, show: _Display, left_out: int) -> Html:
    parts = [_task(sample, run, show) for sample in answered[:_TASKS]]
    if left_out:
        notice = (
            f"{left_out:,} more requests are in the totals and the errors alone: see trace_calls."
        )
        parts.insert(0, tag("p", notice, class_="mute"))
    if len(answered) > _TASKS:
        parts.append(tag("p", f"And {len(answered) - _TASKS:,} more questions.", class_="mute"))
    return join_html(parts)


def _task(sample: TaskSample, run: Run | None, show: _Display) -> Html:
    task = sample.task
    facts = [f"answers: {cut(str(task.constraint), _VALUE)}"]
    if task.columns:
        facts.append(f"about: {cut(', '.join(name or '…' for name in task.columns), _VALUE)}")
    facts += [count_noun(sample.requests, "request"), f"task {digest_of(task)}"]
    head = tag("h3", tag("code", task.ingredient), " ", cut(task.question, _VALUE))
    parts = [head, tag("p", " · ".join(facts), class_="mute")]
    parts += _distribution(sample, show)
    if sample.shown_samples:
        scored = all(answer.logprob is not None for _, answer in sample.shown_samples)
        caption = (
            "A few of the answers" if sample.requests > len(sample.shown_samples) else "The answers"
        )
        rows = [
            [
                show.values(values),
                show.value(answer.text),
                "cache" if answer.usage.cached else answer.model or "model",
                *([f"{exp(answer.logprob or 0):.3f}"] if scored else []),
                f"{answer.usage.prompt_tokens:,}",
                f"{answer.usage.completion_tokens:,}",
            ]
            for values, answer in sample.shown_samples
        ]
        heads = ["Values", "Answer", "From", *(["Probability"] if scored else [])]
        heads += ["Prompt tokens", "Answer tokens"]
        parts.append(
            table(caption, heads, rows, kinds=["wide", "wide", "", *["n"] * (len(heads) - 3)])
        )
        parts += _prompt(sample, run, show)
    return tag("div", *parts, class_="task")


def _distribution(sample: TaskSample, show: _Display) -> list[Html]:
    """The frequency of answers, if answers recur."""
    most = sample.answers.most_common(_ANSWERS)
    if not most or len(sample.answers) == sample.answers.total() > 1:
        return []
    rows: list[list[str]] = []
    for text, number in most:
        share = number / sample.requests
        bar = tag("span", class_="meter", style=f"width:{share:.1%};margin-left:0")
        rows.append([show.value(text), f"{number:,}", bar, f"{share:.1%}"])
    rest = sample.answers.total() + sample.others - sum(number for _, number in most)
    if rest:
        rows.append([tag("span", "other answers", class_="mute"), f"{rest:,}", "", ""])
    heads = ["Answer", "Requests", "", "Share"]
    return [table("How often which answer came", heads, rows, kind="shares")]


def _prompt(sample: TaskSample, run: Run | None, show: _Display) -> list[Html]:
    """The prompts of the first sample, turn by turn."""
    reader = next((m for m in run.models.values() if m.prompts), None) if run is not None else None
    if run is None or reader is None:
        return []
    shown: list[Html] = []
    for task in reader.model_tasks(sample.task):
        prompt = render(task, shots=reader.shots, listed=reader.lists_options)
        turns: list[Html] = []
        for turn in prompt.messages(sample.shown_samples[0][0]):
            turns.append(tag("p", turn["role"], class_="turn"))
            turns.append(tag("pre", show.value(turn["content"], _TEXT)))
        title = tag("summary", "A prompt, before the model's chat template")
        shown.append(tag("details", title, *turns))
    return shown


def _errors(failed: Sequence[TaskSample], show: _Display) -> Html:
    rows: list[list[str]] = []
    for sample in failed[:_TASKS]:
        for kind, number in sample.failures.most_common(_REASONS):
            values, reason = sample.failed[kind]
            question = join_html(
                [tag("code", sample.task.ingredient), " ", cut(sample.task.question, _VALUE)]
            )
            rows.append([question, show.reason(reason), show.values(values), f"{number:,}"])
    number = sum(sample.failures.total() for sample in failed)
    caption = f"{count_noun(number, 'request')} without a valid answer, by kind of reason"
    heads = ["Call", "Reason", "Of the first", "Requests"]
    return table(caption, heads, rows, kinds=["wide", "wide", "wide", "n"])


# --- how it was planned and set ------------------------------------------------------------------


def _rewrites(rewrites: Sequence[Rewrite]) -> Html:
    parts: list[Html] = []
    for rewrite in rewrites:
        before, after = changed_trees(rewrite.before, rewrite.after)
        sides = [
            tag("div", tag("p", word, class_="turn"), tag("pre", _lines(lines), class_="plan"))
            for word, lines in (("before", before), ("after", after))
        ]
        times = f" ×{rewrite.times} ({rewrite.seconds * 1e3:.1f} ms)"
        summary = tag("summary", tag("code", rewrite.rule), times)
        parts.append(tag("details", summary, tag("div", *sides, class_="sides")))
    return join_html([tag("p", "What each did where it fired first.", class_="mute"), *parts])


def _lines(lines: Sequence[str]) -> str:
    more = [f"… {len(lines) - _LINES:,} more lines"] if len(lines) > _LINES else []
    return "\n".join([*(cut(line, _VALUE) for line in lines[:_LINES]), *more])


def _settings(trace: Trace, run: Run) -> Html:
    parts: list[Html] = []
    for model in run.models.values():
        facts = [("name", model.name), ("window", f"{model.window:,} tokens")]
        facts += sorted(model.settings.items())
        parts.append(table("Model", ["", "Value"], [[tag("code", k), v] for k, v in facts]))
    limits = [] if trace.ledger is None else list(trace.ledger.budget.limits())
    if limits:
        rows = [[tag("code", name), f"{limit:,}"] for name, limit in limits]
        parts.append(table("Budget of the query", ["Limit", "At most"], rows))
    usual, rows = Options(), []
    for field in fields(Options):
        value, default = getattr(run.options, field.name), getattr(usual, field.name)
        setting = _setting(value)
        shown = tag("b", setting) if value != default else setting
        rows.append([tag("code", field.name), shown, _setting(default)])
    parts.append(table("Options of the session", ["Option", "Value", "Default"], rows))
    return join_html(parts)


def _setting(value: object) -> str:
    return "a function" if callable(value) else cut(repr(value), _VALUE)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:,.2f} s"
