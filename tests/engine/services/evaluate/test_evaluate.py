"""Evaluations: figures beside labels, several calls and models in one run, and labels that stay
unseen."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.evaluate.checks import read_checks
from blendfusion.services.evaluate.figures import (
    Figure,
    area_figures,
    confidence_figures,
    label_figures,
    number_figures,
    share,
    yes_no_figures,
)
from blendfusion.services.evaluate.intervals import correct, sign_test, wilson

TEXTS = ["it broke", "fine", "broke again", "good", "broke? no", None, "it broke"]
LABELS = [True, False, True, True, False, True, None]
CALL = "llm_filter('Is this a complaint?', text)"


def odds(call: bf.Request) -> dict[bool, float]:
    yes = 0.9 if "broke" in str(call.values[0]) else 0.2
    return {True: yes, False: 1 - yes}


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(odds)


@pytest.fixture
def session(model: bf.ScriptedModel) -> bf.Session:
    made = bf.connect(model, cache=None, show_values="on")
    made.from_pydict({"text": TEXTS, "label": LABELS}, name="t")
    return made


def values(evaluation: bf.Evaluation) -> dict[str, float]:
    return {name: round(figure.value, 4) for name, figure in evaluation.figures.items()}


def test_a_frame_is_measured_against_its_labels(session: bf.Session) -> None:
    frame = session.sql(f"SELECT {CALL} AS complaint, label, text FROM t")
    found = frame.evaluate("complaint", "label")
    assert (found.rows, found.unlabelled, found.unanswered) == (7, 1, 1)
    assert values(found) == {
        "answered": 0.8333,
        "accuracy": 0.6,
        "balanced_accuracy": 0.5833,
        "precision": 0.6667,
        "recall": 0.6667,
        "f1": 0.6667,
    }
    assert found.confusion.to_pydict()["rows"] == [1, 1, 1, 2]
    assert found.wrong.to_pydict()["text"] == ["good", "broke? no"]
    assert found.without_answer.to_pydict() == {"text": [None], "answer": [None], "label": [True]}
    assert found.usage.values == 5


def test_confidences_are_kept_where_a_call_can_give_them(session: bf.Session) -> None:
    found = session.evaluate("t", CALL, "label")[0]
    # By hand: bins 0.8 (2 rows, 1 right) and 0.9 (3 rows, 2 right); area of 3 yes and 2 no.
    assert values(found)["calibration_error"] == round(2 / 5 * 0.3 + 3 / 5 * (0.9 - 2 / 3), 4)
    assert values(found)["area"] == round((2 * 1.5 + 0.5) / 6, 4)
    assert found.calibration.to_pydict()["rows"] == [2, 3]
    with_struct = session.sql(f"SELECT {CALL[:-1]}, confidence => 'keep') AS a, label FROM t")
    assert values(with_struct.evaluate("a", "label")) == values(found)


def test_variants_share_one_run_in_which_each_value_is_asked_once(
    session: bf.Session, model: bf.ScriptedModel
) -> None:
    other = bf.ScriptedModel(lambda call: True, name="always")
    session.register_model("always", other)
    calls = {"complaint": CALL, "broken": "llm_filter('Broken?', text)"}
    found = session.evaluate("t", calls, "label", models=["scripted", "always"])
    assert [e.name for e in found] == [
        *("complaint · scripted", "complaint · always"),
        *("broken · scripted", "broken · always"),
    ]
    asked = [(c.question, c.values) for c in model.calls]
    assert len(asked) == len(set(asked)) == 10
    assert [e.usage.values for e in found] == [5, 5, 5, 5]
    again = session.evaluate("t", calls, "label", models=["scripted", "always"])
    assert [(e.usage.values, e.usage.cached) for e in again] == [(0, 5)] * 4
    assert found["complaint · always"].accuracy == 0.6
    assert found.p_value("complaint · always") == 0.75  # one row better, one worse
    assert found.to_arrow_table().num_rows == sum(e.to_arrow_table().num_rows for e in found)


def test_a_budget_limits_an_evaluation(session: bf.Session) -> None:
    with pytest.raises(bf.BudgetExceeded):
        session.evaluate("t", CALL, "label", budget=bf.Budget(values=2))


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SELECT llm_filter('x', text, label) AS a, label FROM t",
        "SELECT llm_filter('x', both) AS a, l AS label FROM "
        "(SELECT concat(text, label) AS both, label AS l FROM t)",
        "SELECT llm_filter('x', u.label) AS a, t.label FROM t JOIN t u ON t.text = u.text",
        "SELECT llm_filter('x', text) AS a, label FROM t WHERE llm_filter('y', label)",
        "SELECT llm_filter('x', m) AS a, label FROM "
        "(SELECT label, max(cast(label AS int)) AS m FROM t GROUP BY label)",
    ],
)
def test_a_call_that_reads_the_label_is_refused_before_anything_is_asked(
    session: bf.Session, model: bf.ScriptedModel, query: str
) -> None:
    with pytest.raises(bf.QueryError, match="reads the label"):
        session.sql(query).evaluate("a", "label")
    assert model.calls == []


def test_calls_over_a_table_do_not_know_its_label(
    session: bf.Session, model: bf.ScriptedModel
) -> None:
    with pytest.raises(bf.QueryError, match="unknown column 'label'"):
        session.evaluate("t", "llm_filter('x', text, label)", "label")
    assert model.calls == []


def test_no_request_holds_a_label(session: bf.Session, model: bf.ScriptedModel) -> None:
    rows = {"text": ["a", "b"], "label": ["secret one", "secret two"]}
    session.from_pydict(rows, name="s")
    session.evaluate("s", "llm_text('What?', text)", "label", kind="label")
    assert model.calls
    assert not any("secret" in repr(call) for call in model.calls)


def test_examples_from_the_evaluated_rows_are_refused(session: bf.Session) -> None:
    session.from_pydict({"text": ["fine", "bad"], "label": ["no", "yes"]}, name="shown")
    call = "llm_filter('x', text, examples => (SELECT text, label FROM shown))"
    with pytest.raises(bf.QueryError, match="1 rows of the evaluation are among the examples"):
        session.evaluate("t", call, "label")


# --- kinds ---------------------------------------------------------------------------------------


def test_labels_have_macro_and_micro_averages() -> None:
    model = bf.ScriptedModel(lambda call: str(call.values[0])[0])
    session = bf.connect(model, cache=None)
    texts = ["a1", "a2", "a3", "b1", "b2", "c1"]
    session.from_pydict({"text": texts, "label": ["A", "a ", "b", "b", "b", "a"]}, name="t")
    found = session.evaluate("t", "llm_classify(text, ['a', 'b', 'c'])", "label")[0]
    kept = values(found)
    assert kept["accuracy"] == kept["micro_f1"] == round(4 / 6, 4)
    assert kept["macro_precision"] == round((2 / 3 + 1 + 0) / 3, 4)
    assert kept["macro_recall"] == round((2 / 3 + 2 / 3) / 2, 4)  # nothing is labelled c
    assert kept["macro_f1"] == round((2 / 3 + 4 / 5 + 0) / 3, 4)
    rows = found.to_arrow_table().to_pylist()
    assert {(r["class"], r["figure"]): r["value"] for r in rows}["b", "precision"] == 1.0


def test_numbers_have_an_error_and_a_tolerance() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: int(str(call.values[0]))), cache=None)
    session.from_pydict({"text": ["1", "2", "9"], "label": [1.0, 3.0, float("nan")]}, name="t")
    exact, near = (
        session.evaluate("t", "llm_int('n', text)", "label", within=within)[0] for within in (0, 1)
    )
    assert (values(exact)["accuracy"], values(near)["accuracy"]) == (0.5, 1.0)
    assert (values(exact)["mae"], exact.unlabelled) == (0.5, 1)


def test_texts_are_equal_after_normalisation() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: " New  York\n"), cache=None)
    session.from_pydict({"text": ["a", "b"], "label": ["new york", "York"]}, name="t")
    found = session.evaluate("t", "llm_text('Where?', text)", "label")[0]
    assert (found.accuracy, found.classes) == (0.5, ())


@pytest.mark.parametrize("labels", [["yes", "No "], [1, 0], ["TRUE", "false"], [1.0, 0.0]])
def test_labels_of_a_boolean_have_several_forms(labels: list[object]) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: call.values[0] == "a"), cache=None)
    session.from_pydict({"text": ["a", "b"], "label": labels}, name="t")
    assert session.evaluate("t", "llm_filter('x', text)", "label")[0].accuracy == 1.0


def test_a_label_of_another_kind_is_an_error(session: bf.Session) -> None:
    session.from_pydict({"text": ["a"], "label": ["maybe"]}, name="odd")
    with pytest.raises(bf.ArgumentError, match="'maybe' is a label, but neither yes nor no"):
        session.evaluate("odd", CALL, "label")


def test_a_table_without_rows_has_no_figures(session: bf.Session) -> None:
    empty = pa.table({"text": pa.array([], pa.string()), "label": pa.array([], pa.bool_())})
    found = session.evaluate(empty, CALL, "label")[0]
    assert math.isnan(found.accuracy)
    assert "0 rows" in repr(found)


# --- intervals -----------------------------------------------------------------------------------


RATES = 0.9, 0.05
"""The share of values that a model answers right, and of rows whose label is wrong."""


def coverage(name: str, truth: float, draw, runs: int) -> float:  # type: ignore[no-untyped-def]
    """The share of runs whose interval of a figure holds the true value."""
    held = 0
    for _ in range(runs):
        figure = next(f for f in draw() if f.name == name)
        assert figure.low < figure.high
        held += figure.low <= truth <= figure.high
    return held / runs


@pytest.mark.parametrize("sizes", ["one", "five", "fifty", "uneven"])
@pytest.mark.parametrize("values", [20, 100])
def test_shares_of_rows_that_repeat_values(cases: int, sizes: str, values: int) -> None:
    rng = np.random.default_rng(values)
    times = {
        "one": lambda: np.ones(values, int),
        "five": lambda: np.full(values, 5),
        "fifty": lambda: np.full(values, 50),
        "uneven": lambda: np.minimum(50, 1 + rng.pareto(0.8, values)).astype(int),
    }[sizes]

    def draw() -> list[Figure]:
        rows = np.repeat(np.arange(values), times())
        right = (rng.random(values) < RATES[0])[rows] != (rng.random(len(rows)) < RATES[1])
        return [share("accuracy", right, rows)]

    truth = RATES[0] * (1 - RATES[1]) + (1 - RATES[0]) * RATES[1]
    # Labels that are wrong by themselves make rows of few values less alike than they seem.
    assert 0.915 <= coverage("accuracy", truth, draw, max(800, cases)) <= 0.995


@pytest.mark.parametrize(
    ("rows", "share_of_yes", "accuracy"),
    [(20, 0.5, 0.99), (20, 0.5, 0.9), (50, 0.1, 0.9), (200, 0.02, 0.9), (500, 0.3, 0.9)],
)
def test_rare_classes_and_no_errors(
    cases: int, rows: int, share_of_yes: float, accuracy: float
) -> None:
    rng = np.random.default_rng(rows)

    def draw() -> list[Figure]:
        labels = rng.random(rows) < share_of_yes
        labels[:2] = True, False
        answers = labels == (rng.random(rows) < accuracy)
        return yes_no_figures(answers, labels, np.arange(rows))

    both, wrong = share_of_yes * accuracy, 1 - accuracy
    for name, truth in (("balanced_accuracy", accuracy), ("f1", 2 * both / (2 * both + wrong))):
        assert 0.91 <= coverage(name, truth, draw, max(800, cases)) <= 0.995


def test_macro_averages_of_skewed_labels(cases: int) -> None:
    rng = np.random.default_rng(6)
    shares = 0.6 ** np.arange(6) / (0.6 ** np.arange(6)).sum()
    table = np.outer(shares, np.full(6, 0.15 / 5))
    np.fill_diagonal(table, shares * 0.85)
    right = np.diag(table)
    truths = {
        "macro_recall": 0.85,
        "macro_precision": (right / table.sum(0)).mean(),
        "macro_f1": (2 * right / (table.sum(0) + table.sum(1))).mean(),
    }

    def draw() -> list[Figure]:
        cells = rng.choice(36, size=100, p=table.ravel())
        return label_figures(cells % 6, cells // 6, 6, np.arange(100))

    for name, truth in truths.items():
        assert 0.92 <= coverage(name, truth, draw, max(800, cases)) <= 0.985


@pytest.mark.parametrize("over", [0.0, 0.05, 0.2])
def test_the_calibration_error_of_a_calibrated_model_may_be_zero(cases: int, over: float) -> None:
    rng = np.random.default_rng(int(over * 100))

    def draw() -> list[Figure]:
        stated = rng.uniform(0.5, 1, 200)
        return confidence_figures(stated, rng.random(200) < stated - over, np.arange(200))

    # The figure cannot be below 0, so its interval often begins there.
    assert 0.9 <= coverage("calibration_error", over, draw, max(150, cases // 10)) <= 1.0
    assert sum(draw()[0].low == 0 for _ in range(40)) >= 36 * (over == 0)


def test_mean_errors_with_a_heavy_tail(cases: int) -> None:
    rng = np.random.default_rng(3)

    def draw() -> list[Figure]:
        return number_figures(rng.exponential(1, 50), np.zeros(50), 0.1, np.arange(50))

    assert 0.93 <= coverage("mae", 1.0, draw, max(800, cases)) <= 0.98


def test_areas(cases: int) -> None:
    rng = np.random.default_rng(4)
    labels = np.arange(60) < 20

    def draw() -> list[Figure]:
        return area_figures(rng.normal(labels * 2.0, 1), labels, np.arange(60))

    assert 0.93 <= coverage("area", NormalDist().cdf(2**0.5), draw, max(800, cases)) <= 0.995


def test_rows_of_one_value_count_once(model: bf.ScriptedModel) -> None:
    session = bf.connect(model, cache=None)
    texts = [f"broke {i % 10}" for i in range(1000)]
    labels = [i % 10 > 0 for i in range(1000)]
    table = pa.table({"text": texts, "label": labels})
    one = session.evaluate(table, CALL, "label")[0]
    frame = session.from_arrow(table).select_exprs(f"{CALL} AS a", "label")
    same = frame.evaluate("a", "label")
    sorted_frame = frame.sort(frame.col("label")).evaluate("a", "label")
    upper = session.evaluate(table, "llm_filter('Is this a complaint?', upper(text))", "label")[0]
    for found in (one, same, sorted_frame, upper):
        low, high = found.figures["accuracy"][2:4]
        assert found.accuracy in (0.9, 0.1)
        assert high - low > wilson(9, 10)[1] - wilson(9, 10)[0] - 0.02
    assert "1,000 rows of 10 values" in repr(one)
    assert frame.trace.values + frame.trace.cached == 10


def test_a_call_without_values_is_one_question(model: bf.ScriptedModel) -> None:
    session = bf.connect(model, cache=None)
    session.from_pydict({"label": [False] * 50}, name="u")
    low, high = session.evaluate("u", "llm_filter('Is it?')", "label")[0].figures["accuracy"][2:4]
    assert high - low > 0.7


def test_a_difference_is_tested_on_the_values_that_changed() -> None:
    assert sign_test(5, 0) == 1 / 32
    assert sign_test(0, 5) == 1.0
    better = bf.ScriptedModel(lambda call: "5" not in call.values[0] and "6" not in call.values[0])
    session = bf.connect(better, cache=None)
    session.register_model("no", bf.ScriptedModel(lambda call: "1" in call.values[0], name="no"))
    rows = [f"v{i % 8}" for i in range(80)]
    table = pa.table({"text": rows, "label": [int(r[1]) < 5 for r in rows]})
    found = session.evaluate(table, CALL, "label", models=["no", "scripted"])
    # Better on v0, v2, v3 and v4, worse on v7, whatever the rows of each.
    assert found.p_value("scripted") == sign_test(4, 1)


def test_p_values_of_several_variants_are_corrected(session: bf.Session) -> None:
    calls = {str(i): f"llm_filter('Question {i}', text)" for i in range(4)}
    found = session.evaluate("t", calls, "label")
    assert found.corrected_p_values == correct([found.p_value(i) for i in (1, 2, 3)])
    assert correct([0.02, 0.01]) == [0.02, 0.02]
    assert "one-sided" in repr(found)


def test_examples_in_another_spelling_are_refused(session: bf.Session) -> None:
    for shown in ("upper(text)", "' ' || text || ' '"):
        call = f"llm_filter('x', text, examples => (SELECT {shown}, label FROM t LIMIT 4))"
        with pytest.raises(bf.QueryError, match="rows of the evaluation are among the examples"):
            session.evaluate("t", call, "label")


# --- display -------------------------------------------------------------------------------------


def test_values_are_text_in_html_and_terminals(session: bf.Session) -> None:
    found = session.evaluate("t", {"<b>\x1b[31m": CALL, "b": CALL}, "label")
    for shown in (found._repr_html_(), found[0]._repr_html_()):
        assert "<b>\x1b" not in shown
    assert "\x1b" not in repr(found) + repr(found[0])


# --- checks --------------------------------------------------------------------------------------

CHECKS = """
[complaints]
table = "t.csv"
call = "llm_text('Which?', text)"
label = "label"
kind = "label"
at_least = {{ accuracy = {low} }}
"""


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("text,label\na,x\nb,y\n")
    return tmp_path / "checks.toml"


def test_a_check_names_the_figure_beyond_its_limit(checks: Path) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "x"), cache=None)
    session.register_csv("t", str(checks.parent / "t.csv"))
    for low, verb in ((0.09, ""), (0.5, "may be"), (0.6, "is")):
        checks.write_text(CHECKS.format(low=low))
        (check,) = read_checks(checks)
        _, failures = check.run(session, "t")
        interval = "2 rows, 95 % interval 0.095 to 0.905"
        line = f"complaints: accuracy 0.500 {verb} below {low} ({interval})"
        assert failures == ([line] if verb else [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no check"),
        ("[a]\ntable = 't'", "the field 'call' must be text"),
        ("[a]\ntabel = 't'", "unknown field 'tabel'"),
        (CHECKS.format(low='"high"'), "'at_least' must give numbers"),
        ("[a]\ntable = 't'\ncall = 'c'\nlabel = 'l'", "limits no figure"),
        ("[a", "cannot be read"),
    ],
)
def test_a_file_of_checks_that_is_wrong_is_an_error(checks: Path, text: str, message: str) -> None:
    checks.write_text(text)
    with pytest.raises(bf.ArgumentError, match=message):
        read_checks(checks)


def test_a_row_without_an_answer_fails_a_check_unless_it_allows_it(checks: Path) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "x"), cache=None)
    session.from_pydict({"text": ["a", None], "label": ["x", "x"]}, name="t")
    for more, failures in (("", 1), (", answered = 0.5", 0)):
        limits = f"accuracy = 0.2{more}"
        checks.write_text(CHECKS.format(low=1).replace("accuracy = 1", limits))
        assert len(read_checks(checks)[0].run(session, "t")[1]) == failures


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with a model that answers x."""
    connect = bf.connect

    def connected(model: object = None, **options: object) -> bf.Session:
        return connect(bf.ScriptedModel(lambda call: "x"), **options)  # type: ignore[arg-type]

    monkeypatch.setattr(bf, "connect", connected)


@pytest.mark.usefixtures("command")
def test_the_command_shows_the_figures(
    checks: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table, wrong = str(checks.parent / "t.csv"), tmp_path / "wrong.csv"
    call = "llm_classify(text, ['x', 'y'])"
    arguments = [call, "--table", table, "--label", "label", "--wrong", str(wrong)]
    assert main(["evaluate", *arguments, "--cache", "off"]) == 0
    assert "accuracy          0.500   0.095 to 0.905" in capsys.readouterr().out
    assert wrong.read_text().splitlines() == ['"text","answer","label"', '"b","x","y"']


@pytest.mark.usefixtures("command")
def test_the_command_fails_with_one_line_below_a_limit(
    checks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for low, status in ((0.09, 0), (0.6, 1)):
        checks.write_text(CHECKS.format(low=low))
        assert main(["evaluate", "--check", str(checks), "--cache", "off"]) == status
    shown = capsys.readouterr()
    assert "complaints: ok (accuracy 0.500)" in shown.out
    assert shown.err == (
        "complaints: accuracy 0.500 is below 0.6 (2 rows, 95 % interval 0.095 to 0.905)\n"
    )


@pytest.mark.usefixtures("command")
def test_a_json_file_of_checks_is_read_like_toml(checks: Path) -> None:
    check = {"table": "t.csv", "call": "llm_text('x', text)", "label": "label"}
    file = checks.with_suffix(".json")
    file.write_text(json.dumps({"a": {**check, "at_most": {"accuracy": 0.1}}}))
    assert main(["evaluate", "--check", str(file), "--cache", "off"]) == 1


@pytest.mark.usefixtures("command")
def test_an_evaluation_without_a_label_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", CALL, "--cache", "off"]) == 2
    assert "needs a call, --label COLUMN and one --table" in capsys.readouterr().err


def test_a_label_that_is_hidden_is_not_in_an_error() -> None:
    model = bf.ScriptedModel(lambda call: True)
    with bf.connect(model, cache=None, progress="off", show_values="off") as session:
        session.from_pydict({"x": ["a", "b"], "label": ["yes", "secret"]}, name="t")
        with pytest.raises(bf.ArgumentError, match="… is a label, but neither yes nor no"):
            session.evaluate("t", "llm_filter('q', x)", "label")


def test_a_report_has_no_control_codes_where_colours_are_forced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a kernel of Jupyter sets it
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"x": ["a"], "y": [True]}, name="t")
    report = session.evaluate("t", "llm_filter('q', x)", "y")
    assert "\x1b" not in f"{report}{report.best}"
