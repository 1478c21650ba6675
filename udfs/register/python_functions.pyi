"""Made from the declarations of the functions by ``make stubs``."""

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.options import OnError
from blendfusion.udfs.declare.struct_schema import SchemaLike
from blendfusion.udfs.register.expr import ColumnLike

__all__ = [
    "llm_answer",
    "llm_bool",
    "llm_classify",
    "llm_compare",
    "llm_date",
    "llm_embed",
    "llm_extract",
    "llm_filter",
    "llm_fix_grammar",
    "llm_float",
    "llm_group",
    "llm_int",
    "llm_join",
    "llm_list",
    "llm_map",
    "llm_members",
    "llm_prefers",
    "llm_probability",
    "llm_qa",
    "llm_redact",
    "llm_same",
    "llm_score",
    "llm_sentiment",
    "llm_similarity",
    "llm_summarize",
    "llm_summary",
    "llm_text",
    "llm_transcribe",
    "llm_translate",
    "llm_validate",
    "llm_vqa",
]

def llm_filter(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    sample: Sequence[str | None] | Sequence[Sequence[str | None]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    threshold: float | None = None,
    calibrated: str | None = None,
    review: str | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    accuracy: float | None = None,
    recall: float | None = None,
    precision: float | None = None,
    delta: float | None = None,
    proxy: str | None = None,
    on_error: OnError | None = None,
    targets: Targets | None = None,
) -> Expr:
    """Whether the answer to ``question`` is yes, as BOOLEAN.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``examples``: Worked examples: the values, then the answer.
    - ``sample``: Unlabelled values resembling yours, ideally both yes and no cases. The yes
      threshold is set halfway between their mean score and that of neutral texts. An answer depends
      on its value and the sample alone; with more than 20 distinct values, a fixed 20 are used. The
      session's ``calibration='column'`` does not apply then; a model without odds ignores the
      sample.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``threshold``: The minimum probability of a yes for the answer to be yes; below it the answer
      is no. Without this option, the likelier of the two counts.
    - ``calibrated``: The name of a calibration (``session.calibrate``), or 'name@2' for its second
      version: every probability of a yes is the share of yes that labels showed for it.
    - ``review``: The name of a table for review: a value whose answer is below ``confidence``, or
      fails, goes there, and a person's answer to it (``session.review``) counts from then on.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``accuracy``: A target of a cascade, a small model before a large one: the least share of
      answers that equal the large model's.
    - ``recall``: A target of a cascade: the least share of the large model's yes that get a yes.
    - ``precision``: A target of a cascade: the least share of yes that are a yes of the large
      model.
    - ``delta``: The probability that the targets of a cascade are missed.
    - ``proxy``: Similarity to the question ('similarity'), or a classifier of vectors
      ('embedding'), takes the place of the small model.
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``targets``: The targets of a cascade in one object, ``bf.Targets(…)``.
    """

def llm_map(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    regex: object | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    sample: Sequence[str | None] | Sequence[Sequence[str | None]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    review: str | None = None,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    accuracy: float | None = None,
    recall: float | None = None,
    precision: float | None = None,
    delta: float | None = None,
    proxy: str | None = None,
    on_error: OnError | None = None,
    returns: str | None = None,
    targets: Targets | None = None,
) -> Expr:
    """The answer to ``question`` for each row: TEXT, or the type in ``returns``. In SQL the type
    also follows from the place of the call: ``WHERE llm_map(…) > 3`` asks for whole numbers.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``options``: A closed set of answers, or of the items of a list; a mapping gives each a
      meaning.
    - ``regex``: A pattern for the whole answer.
    - ``examples``: Worked examples: the values, then the answer.
    - ``sample``: Unlabelled values resembling yours, ideally both yes and no cases. The yes
      threshold is set halfway between their mean score and that of neutral texts. An answer depends
      on its value and the sample alone; with more than 20 distinct values, a fixed 20 are used. The
      session's ``calibration='column'`` does not apply then; a model without odds ignores the
      sample.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``review``: The name of a table for review: a value whose answer is below ``confidence``, or
      fails, goes there, and a person's answer to it (``session.review``) counts from then on.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``accuracy``: A target of a cascade, a small model before a large one: the least share of
      answers that equal the large model's.
    - ``recall``: A target of a cascade: the least share of the large model's yes that get a yes.
    - ``precision``: A target of a cascade: the least share of yes that are a yes of the large
      model.
    - ``delta``: The probability that the targets of a cascade are missed.
    - ``proxy``: Similarity to the question ('similarity'), or a classifier of vectors
      ('embedding'), takes the place of the small model.
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``returns``: A type: 'int', 'float', 'bool', 'date', 'timestamp', 'text', 'list', 'list[int]',
      …; 'list{3}', 'list[int]{1,4}', 'list+' set the number of items. Fields as in CREATE TABLE
      give a struct: 'a TEXT, b INT'.
    - ``targets``: The targets of a cascade in one object, ``bf.Targets(…)``.
    """

def llm_bool(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    sample: Sequence[str | None] | Sequence[Sequence[str | None]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    threshold: float | None = None,
    calibrated: str | None = None,
    review: str | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    accuracy: float | None = None,
    recall: float | None = None,
    precision: float | None = None,
    delta: float | None = None,
    proxy: str | None = None,
    on_error: OnError | None = None,
    targets: Targets | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as BOOLEAN.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``examples``: Worked examples: the values, then the answer.
    - ``sample``: Unlabelled values resembling yours, ideally both yes and no cases. The yes
      threshold is set halfway between their mean score and that of neutral texts. An answer depends
      on its value and the sample alone; with more than 20 distinct values, a fixed 20 are used. The
      session's ``calibration='column'`` does not apply then; a model without odds ignores the
      sample.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``threshold``: The minimum probability of a yes for the answer to be yes; below it the answer
      is no. Without this option, the likelier of the two counts.
    - ``calibrated``: The name of a calibration (``session.calibrate``), or 'name@2' for its second
      version: every probability of a yes is the share of yes that labels showed for it.
    - ``review``: The name of a table for review: a value whose answer is below ``confidence``, or
      fails, goes there, and a person's answer to it (``session.review``) counts from then on.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``accuracy``: A target of a cascade, a small model before a large one: the least share of
      answers that equal the large model's.
    - ``recall``: A target of a cascade: the least share of the large model's yes that get a yes.
    - ``precision``: A target of a cascade: the least share of yes that are a yes of the large
      model.
    - ``delta``: The probability that the targets of a cascade are missed.
    - ``proxy``: Similarity to the question ('similarity'), or a classifier of vectors
      ('embedding'), takes the place of the small model.
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``targets``: The targets of a cascade in one object, ``bf.Targets(…)``.
    """

def llm_int(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as BIGINT.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_float(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as DOUBLE.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_date(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as DATE. The date is read from the text: one that
    a single value does not state is NULL, unless ``evidence => false``.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_text(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    regex: object | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    accuracy: float | None = None,
    delta: float | None = None,
    proxy: str | None = None,
    on_error: OnError | None = None,
    targets: Targets | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as TEXT.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``options``: A closed set of answers, or of the items of a list; a mapping gives each a
      meaning.
    - ``regex``: A pattern for the whole answer.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``accuracy``: A target of a cascade, a small model before a large one: the least share of
      answers that equal the large model's.
    - ``delta``: The probability that the targets of a cascade are missed.
    - ``proxy``: Similarity to the question ('similarity'), or a classifier of vectors
      ('embedding'), takes the place of the small model.
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``targets``: The targets of a cascade in one object, ``bf.Targets(…)``.
    """

def llm_list(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
    returns: str | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as LIST of TEXT.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``options``: A closed set of answers, or of the items of a list; a mapping gives each a
      meaning.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``returns``: A type of lists: 'list' or 'list[int]', with the number of items in 'list{3}',
      'list{1,4}', 'list+'.
    """

def llm_classify(
    value: ColumnLike | Sequence[ColumnLike],
    labels: Sequence[str] | Mapping[str, str],
    *,
    question: str | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    review: str | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    accuracy: float | None = None,
    delta: float | None = None,
    proxy: str | None = None,
    on_error: OnError | None = None,
    returns: str | None = None,
    targets: Targets | None = None,
) -> Expr:
    """The label that fits the value best, as TEXT; with ``returns`` a list, all labels that fit.
    Several values, such as a text and an image, are one question: ``llm_classify(text, photo, labels)``
    in SQL, a list of columns in Python.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``labels``: The labels; a mapping gives each a meaning: ``{"billing": "invoices and refunds",
      "other": "all else"}``.
    - ``question``: The criterion of a classification or an extraction, or the topic of a summary.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``review``: The name of a table for review: a value whose answer is below ``confidence``, or
      fails, goes there, and a person's answer to it (``session.review``) counts from then on.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``accuracy``: A target of a cascade, a small model before a large one: the least share of
      answers that equal the large model's.
    - ``delta``: The probability that the targets of a cascade are missed.
    - ``proxy``: Similarity to the question ('similarity'), or a classifier of vectors
      ('embedding'), takes the place of the small model.
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``returns``: A type of lists: 'list' or 'list[int]', with the number of items in 'list{3}',
      'list{1,4}', 'list+'.
    - ``targets``: The targets of a cascade in one object, ``bf.Targets(…)``.
    """

def llm_extract(
    value: ColumnLike | Sequence[ColumnLike],
    schema: SchemaLike,
    *,
    question: str | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    evidence: bool | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The fields of ``schema`` in the value, as a STRUCT in their order; a field that the value
    does not mention is NULL, and so is a number or a date that a single text does not state, unless
    ``evidence => false``. One request per value, however many fields are read. Several values, such
    as a text and an image, are one question: ``llm_extract(text, photo, schema)`` in SQL, a list of
    columns in Python.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``schema``: The fields, as in CREATE TABLE: ``"name TEXT, year INT COMMENT 'of release', tags
      LIST, season IN ('spring', 'summer')"``, or the JSON schema of an object; in Python also a
      ``pyarrow.Schema`` or struct type, whose fields may have a "description" in their metadata, or
      a pydantic model class. Types are TEXT, INT (BIGINT), FLOAT (DOUBLE), DECIMAL(10, 2), BOOLEAN,
      DATE, TIMESTAMP, lists and structs of these, and closed sets. Other widths of types,
      validators and defaults are ignored.
    - ``question``: The criterion of a classification or an extraction, or the topic of a summary.
    - ``examples``: Worked examples: the values, then the answer.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_score(
    question: str,
    *values: ColumnLike,
    low: int = 0,
    high: int = 10,
    levels: Sequence[str] | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    confidence: float | str | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The degree to which ``question`` holds for each row, as DOUBLE between ``low`` and
    ``high``: the expected answer, by the model's probability of each whole number of the scale. A
    server without probabilities gives one of the numbers. For one plain idea ("How angry is the
    customer?"), a local model gives the probability that it holds, on the scale.

    Sort by it for the best rows:
    ``frame.sort(bf.llm_score("How angry is it?", "text").sort(ascending=False)).limit(5)``.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``low``: The lowest point of the scale.
    - ``high``: The highest point of the scale, which has 11 points at most.
    - ``levels``: The description of each level, the lowest first; the scale then goes from 0 to
      their number less one.
    - ``examples``: Worked examples: the values, then the answer.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_probability(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    sample: Sequence[str | None] | Sequence[Sequence[str | None]] | None = None,
    consistency: int = 1,
    calibrated: str | None = None,
    reasoning: str | int | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The probability that the answer to ``question`` is yes, for each row, as DOUBLE from 0 to
    1. It is the question of ``llm_filter`` and ``llm_bool``, and shares its answers with them. Whether
    0.8 means that eight of ten such answers are right depends on the model and the wording:
    ``frame.evaluate`` measures it, and ``calibrated`` corrects it by labels.

    A model without probabilities is refused: local models have them, servers that give logprobs, and
    decision models.

    Sort by it for the surest rows, or add it up for the number of rows to expect:
    ``frame.aggregate([], [f.sum(bf.llm_probability("Is it late?", "text"))])``. To
    filter with another limit than one half, write ``llm_filter(…, threshold => 0.8)``.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``examples``: Worked examples: the values, then the answer.
    - ``sample``: Unlabelled values resembling yours, ideally both yes and no cases. The yes
      threshold is set halfway between their mean score and that of neutral texts. An answer depends
      on its value and the sample alone; with more than 20 distinct values, a fixed 20 are used. The
      session's ``calibration='column'`` does not apply then; a model without odds ignores the
      sample.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``calibrated``: The name of a calibration (``session.calibrate``), or 'name@2' for its second
      version: every probability of a yes is the share of yes that labels showed for it.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_join(
    value: ColumnLike,
    other: ColumnLike,
    *,
    how: str | None = None,
    many: bool = False,
    exact: bool = False,
    labels: Sequence[str] | None = None,
    label_question: str | None = None,
    match: str | Sequence[Sequence[str]] | None = None,
    check: int | None = None,
    k: int = 10,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """Whether ``value`` of one side of a join matches ``other`` of the other side, as BOOLEAN.

    In the condition of a join, each distinct ``value`` matches at most one ``other`` (any number with
    ``many``): an equal one, or one that differs only in case, accents and punctuation, without a call;
    else the one that the model chooses among the ``k`` with the most similar spelling. If both values
    come from one side, the model is asked about every pair. NULL if a value is NULL or blank.

    With ``labels``, the model labels each value, and labels decide which values match (FALSE beside a
    NULL, too, if the other's label is in no pair of ``match``). With ``how`` and without ``match``,
    sampled pairs of values per pair of labels decide; undecided pairs of labels are asked pair by
    pair.

    - ``how``: What makes two values match, in words; then no match is free.
    - ``many``: Whether a value may match any number of values of the other side, not one.
    - ``exact``: Whether the model is asked about every pair; then no match is free.
    - ``labels``: The model labels each value, and labels decide which values match.
    - ``label_question``: The criterion of the labels.
    - ``match``: The labels that match: equal ones ('same'), 'different' ones, or pairs such as
      ``[['a', 'b']]``.
    - ``check``: How many unmatched values to retry against the next ``k`` candidates: EXPLAIN
      ANALYZE then estimates the missed matches. With ``labels`` and ``how``, the sampled pairs of
      values per pair of labels.
    - ``k``: The number of candidates that the model sees for one value: those with the most similar
      spelling. Without it, up to 12 texts are all candidates.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_vqa(
    question: str,
    *image: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    regex: object | None = None,
    confidence: float | str | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
    returns: str | None = None,
) -> Expr:
    """The answer to ``question`` about an image, or about several together, or about images and
    texts. The model must see images.

    Images are columns (or names of columns): BINARY, the bytes of a PNG, JPEG, GIF or
    WebP, or TEXT, an http(s) URL, which the model's server fetches, or a data: URL. Beside another value,
    any other TEXT is a text; alone, it has failed, see ``on_error``. A row whose images are all NULL or empty gives NULL without a call;
    equal images are one question.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``options``: A closed set of answers, or of the items of a list; a mapping gives each a
      meaning.
    - ``regex``: A pattern for the whole answer.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``returns``: A type: 'int', 'float', 'bool', 'date', 'timestamp', 'text', 'list', 'list[int]',
      …; 'list{3}', 'list[int]{1,4}', 'list+' set the number of items. Fields as in CREATE TABLE
      give a struct: 'a TEXT, b INT'.
    """

def llm_answer(
    question: str,
    value: ColumnLike,
    *,
    options: Sequence[str] | Mapping[str, str] | None = None,
    regex: object | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    evidence: bool | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
    returns: str | None = None,
) -> Expr:
    """The answer to ``question`` about all items of a list, or about a text: TEXT, or the type
    in ``returns``. With ``evidence``, the struct also has ``item``, the place of the item that states
    the answer, from 1; its offsets are in that item.

    Items keep their order; NULL and blank ones are left out, and a list without other
    items gives NULL without a call. A list longer than the model's window is read in parts.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``options``: A closed set of answers, or of the items of a list; a mapping gives each a
      meaning.
    - ``regex``: A pattern for the whole answer.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``evidence``: Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the
      words of the text that state it), their offsets ``start`` and ``end``, and ``reason``; what
      the text does not state is NULL. Without this option, so are the numbers and dates of
      ``llm_date`` and ``llm_extract``; false: the model's word counts.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``returns``: A type: 'int', 'float', 'bool', 'date', 'timestamp', 'text', 'list', 'list[int]',
      …; 'list{3}', 'list[int]{1,4}', 'list+' set the number of items. Fields as in CREATE TABLE
      give a struct: 'a TEXT, b INT'.
    """

def llm_summary(
    value: ColumnLike,
    *,
    question: str | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """A summary of all items of a list, or of a text, as TEXT.

    Items keep their order; NULL and blank ones are left out, and a list without other
    items gives NULL without a call. A list longer than the model's window is read in parts.

    - ``question``: The criterion of a classification or an extraction, or the topic of a summary.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_members(
    value: ColumnLike,
    members: ColumnLike,
    *,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The items of ``members``, a column of lists, that mean the same as ``value`` or are a kind
    of it: 'coffee' among cuisines is 'cafe' and 'coffee & tea'. LIST of TEXT, in their order.

    An item that equals the value except for case and blanks is the only result, without a call.
    Otherwise one question is asked per value and list (one per 100 items, or fewer with a small
    window). Without a matching item, the list is empty. A NULL or blank value gives NULL.

    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_similarity(
    a: ColumnLike,
    b: ColumnLike,
) -> Expr:
    """The similarity of ``a`` and ``b`` in meaning, from -1 to 1: the cosine of their vectors, as
    DOUBLE. Each is a column (or its name) or a literal, ``lit("gravel bikes")``. Each distinct text is
    embedded once.

    NULL and blank texts give NULL. No language model is asked.
    """

def llm_embed(
    text: ColumnLike,
) -> Expr:
    """The vector of ``text`` by the session's embedder, as LIST of FLOAT. Vectors have length
    one, so that the inner product of two is their cosine.

    NULL and blank texts give NULL. No language model is asked.
    """

def llm_transcribe(
    audio: ColumnLike,
    *,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The words of the speech in ``audio``, as TEXT. The default model is Moonshine, for
    English, of the extra 'speech'.

    A recording is a column (or its name): BINARY, the bytes of a WAV, FLAC or Ogg file of at
    most an hour and 64 MB. What is none has failed, see ``on_error``. NULL and no bytes give NULL without
    a call; equal recordings are transcribed once.

    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_same(
    value: ColumnLike,
    *,
    by: str | None = None,
    k: int | None = None,
    check: int | None = None,
    write: str | None = None,
    name: str | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The value that stands for the entity of ``value``, as TEXT: equal for all values of the
    column that name the same thing. It is the one most similar to the others.

    Values that differ only in case, accents and punctuation are the same without a call. Then the model
    is asked whether pairs of similar values are the same, the most similar first. Each pair is asked at
    most once, and no pair whose answer follows from others: if a is b and b is c, a is c; if a is b and b
    is not c, a is not c. ``check``
    samples such pairs. EXPLAIN ANALYZE counts the pairs. ``name`` keeps the entities for further values, of
    this column or another.

    The column holds the values of the rows beside which the call stands, after the predicates
    that need no model; results do not depend on the order of rows. NULL and blank values give NULL.

    - ``by``: What makes two values the same, in words; then values that differ only in case,
      accents and punctuation are asked about, too.
    - ``k``: The number of similar values with which each value is compared: those with the most
      similar spelling, with ``by`` half of them those with the most similar vectors. At most 0.6 k
      pairs per value are asked. Without it, up to 12 values are all compared with one another, and
      more values with 5, or with more of those that are equally similar.
    - ``check``: The number of pairs that are asked although other answers imply that they are the
      same. An entity with a contradiction is asked about all its pairs, and divided by majority; a
      warning counts the contradictions, and ``trace.conflicts`` lists them.
    - ``write``: What the model writes as the name of an entity of several values, in words: one
      question an entity. By default one of the values is chosen.
    - ``name``: The name under which ``session.entities`` keeps the entities. Calls with the same
      name compare new values with these and with one another; known values are not asked again.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_group(
    value: ColumnLike,
    *,
    into: int | None = None,
    by: str | None = None,
    level: int = 1,
    describe: bool = False,
    name: str | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The name of the group to which ``value`` belongs, as TEXT; 'other' if it fits none.

    The vectors of the column's distinct values form clusters. The model names each cluster from the values
    nearest to its centre, one question a cluster. Then it sorts each distinct value into one of the names, one
    question a value; the less sure it is, the more the vectors count. Needs an embedder.

    Groups depend on the values of the column. ``name`` keeps them: then further values are sorted into the
    same groups. ``describe => true`` takes a further question a cluster. ``level => 2`` gives coarser groups, each of which holds whole groups of level 1.

    The column holds the values of the rows beside which the call stands, after the predicates
    that need no model; results do not depend on the order of rows. NULL and blank values give NULL.

    - ``into``: The number of clusters that the model names; names that are equal become one group.
      By default √(n/2) for n values, from 2 to 20.
    - ``by``: What the groups are about, in words.
    - ``level``: The level of the groups: 2 for groups of the groups' names, 3 for groups of these.
    - ``describe``: The model also describes each group in a sentence, which it then reads when it
      sorts values into the groups.
    - ``name``: The name under which ``session.groups`` keeps the groups. Calls with the same name
      sort their values into the same groups, so that only new values are asked.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_prefers(
    question: str,
    value: ColumnLike,
    *,
    k: int | None = None,
    scores: str | None = None,
    check: int | None = None,
    list_size: int | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The rank of ``value`` among the values of the column, as BIGINT: 1 for the one that ``question``
    prefers to all others.

    The model compares pairs of distinct values, each pair once. For the first k of n values, a tournament
    compares at most n + 2 k log₂ n pairs; for all of them, a sort compares about n log₂ n. Some pairs are
    asked in both orders; if their winners depend on the order, so are all pairs. Other pairs whose order
    follows from answers are compared to find cycles, which EXPLAIN ANALYZE counts. If there are many, the
    strengths that make all answers most likely are the order. ``llm_score`` is cheaper: one question a
    value. ``list_size`` puts lists of texts into order instead of pairs.

    The column holds the values of the rows beside which the call stands, after the predicates
    that need no model; results do not depend on the order of rows. NULL and blank values give NULL.

    - ``question``: What is asked about two values, such as 'which is angrier'.
    - ``k``: The number of first ranks that are wanted, or of last ranks if it is negative; all
      other values share the next rank. ``ORDER BY llm_prefers(…) LIMIT k`` implies it.
    - ``scores``: A question for scores of single values, asked first. They decide where comparisons
      do not.
    - ``check``: The number of pairs that are compared although other answers imply their order. By
      default half of the wanted ranks.
    - ``list_size``: The number of values that the model puts into order at once, from 3; by default
      it compares pairs. Lists are fewer questions, and need a large model.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_compare(
    a: ColumnLike,
    operator: str,
    b: ColumnLike,
    *,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """Whether ``a = b``, ``a < b``, … holds for the meanings of the values, as BOOLEAN.

    ``a`` and ``b`` are columns (or their names) or literals, ``lit("5 km")``. NULL if either is NULL or
    blank. Equal texts, and two numbers, amounts, dates or times, are compared without a call; number
    words, dates and units with the extra ``compare``. The model is asked about any other pair once, in
    either order: ``<>`` is the negation of ``=``, ``a > b`` is ``b < a``, and ``a <= b`` is the negation
    of ``b < a``.

    - ``operator``: One of ``= <> < <= > >=``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_sentiment(
    value: ColumnLike,
    *,
    examples: Sequence[Sequence[object]] | None = None,
    confidence: float | str | None = None,
    review: str | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The sentiment of ``value``, as TEXT: positive, neutral or negative. For the sentiment about
    one aspect, ask ``llm_classify(value, ['positive', 'negative'], question => 'What about the price?')``.


    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``examples``: Worked examples: the values, then the answer.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``review``: The name of a table for review: a value whose answer is below ``confidence``, or
      fails, goes there, and a person's answer to it (``session.review``) counts from then on.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_translate(
    value: ColumnLike,
    language: str,
    *,
    examples: Sequence[Sequence[object]] | None = None,
    check: str | None = None,
    retries: int = 2,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """``value`` in ``language``, as TEXT.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``language``: The language of the result, by its name.
    - ``examples``: Worked examples: the values, then the answer.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_fix_grammar(
    value: ColumnLike,
    *,
    examples: Sequence[Sequence[object]] | None = None,
    check: str | None = None,
    retries: int = 2,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """``value`` with correct spelling and grammar, as TEXT.

    Values are columns (or names of columns): texts, or images for a model that sees them,
    as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call.

    - ``examples``: Worked examples: the values, then the answer.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_redact(
    value: ColumnLike,
    *,
    also: str = "names of people and postal addresses",
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """``value`` with [EMAIL], [PHONE] and [CARD] for what rules find, and [REDACTED] for what the model
    finds, as TEXT; nothing else changes. The model sees the text after the rules, and lists spans; those
    that the text does not contain are left out. A text without a valid answer is NULL, or raises.

    - ``also``: What the model looks for, beside the e-mail addresses, telephone and card numbers
      that rules find; '' for rules alone, without a call.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    """

def llm_qa(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    regex: object | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    check: str | None = None,
    retries: int = 2,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
    returns: str | None = None,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """The answer to ``question`` about the rows of a group: TEXT, or the type in ``returns``.

    NULL and blank rows are left out; a group without other rows gives NULL without a
    call. Without ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A
    context longer than the model's window is folded in several passes.

    - ``question``: The question; ``{}`` or ``{column}`` in it stands for a value.
    - ``options``: A closed set of answers, or of the items of a list; a mapping gives each a
      meaning.
    - ``regex``: A pattern for the whole answer.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``check``: A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does
      not hold is asked for again, with the reason, ``retries`` times at most; then it has failed.
    - ``retries``: How often an answer that fails ``check`` is asked for again.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``returns``: A type: 'int', 'float', 'bool', 'date', 'timestamp', 'text', 'list', 'list[int]',
      …; 'list{3}', 'list[int]{1,4}', 'list+' set the number of items. Fields as in CREATE TABLE
      give a struct: 'a TEXT, b INT'.
    - ``order_by``: The column by which the rows of a group are sorted.
    - ``where``: The condition of the rows that count, as in a FILTER clause.
    """

def llm_validate(
    claim: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[object]] | None = None,
    consistency: int = 1,
    confidence: float | str | None = None,
    review: str | None = None,
    reasoning: str | int | None = None,
    reasons: bool = False,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """Whether the rows of a group support ``claim``, as BOOLEAN.

    NULL and blank rows are left out; a group without other rows gives NULL without a
    call. Without ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A
    context longer than the model's window is folded in several passes.

    - ``claim``: The claim to judge.
    - ``examples``: Worked examples: the values, then the answer.
    - ``consistency``: The number of ways to ask the question; the majority answer counts.
    - ``confidence``: The minimum probability of a yes, a no or an option; an answer below it is
      NULL. 'keep' gives a struct of ``value`` and ``confidence``; 'all' a map of each possible
      answer (``true`` and ``false``, the options, the points of a scale) and its probability.
    - ``review``: The name of a table for review: a value whose answer is below ``confidence``, or
      fails, goes there, and a person's answer to it (``session.review``) counts from then on.
    - ``reasoning``: Whether the model writes a reason before each answer: 'brief', or the most
      tokens of it. A reason is a question of its own, and a value of the one for the answer; an
      example may have one behind its answer.
    - ``reasons``: Whether each result is a struct of ``value`` and ``reason``.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``order_by``: The column by which the rows of a group are sorted.
    - ``where``: The condition of the rows that count, as in a FILTER clause.
    """

def llm_summarize(
    *values: ColumnLike,
    question: str | None = None,
    model: str | Sequence[str] | None = None,
    on_error: OnError | None = None,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """A summary of the rows of a group, as TEXT.

    NULL and blank rows are left out; a group without other rows gives NULL without a
    call. Without ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A
    context longer than the model's window is folded in several passes.

    - ``question``: The criterion of a classification or an extraction, or the topic of a summary.
    - ``model``: Name(s) of registered models. Several form a failover chain; with targets, a
      cascade (the smallest first).
    - ``on_error``: The result for a value without a valid answer: NULL ('null'), an error of the
      query ('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's
      option.
    - ``order_by``: The column by which the rows of a group are sorted.
    - ``where``: The condition of the rows that count, as in a FILTER clause.
    """
