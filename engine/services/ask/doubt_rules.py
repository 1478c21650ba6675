"""The table of rules that hold a drafted query against its question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from blendfusion.services.ask import (
    doubtful_aggregates,
    doubtful_groups,
    doubtful_joins,
    doubtful_numbers,
    doubtful_order,
    doubtful_periods,
    doubtful_predicates,
    doubtful_repeats,
    doubtful_spellings,
)
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.question_form import doubtful_form


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and what follows from a doubt: a strong one is repaired, a weak one is a note."""

    find: Callable[[Case], Doubt | None]
    is_strong: bool
    reason: str
    is_of_whole: bool = False
    """Whether it finds what no word of the question asks for: in a conversation, an earlier one may
    have."""

    @property
    def name(self) -> str:
        return self.find.__name__.replace("_", " ")


def form(case: Case) -> Doubt | None:
    """The doubts of ``question_form``."""
    return doubtful_form(case.question, case.tree.sql("postgres"), case.catalog)


STRONG, WEAK, WHOLE = True, False, True
RULES = (
    Rule(doubtful_joins.cross_join, STRONG, "every row is paired with every other"),
    Rule(doubtful_joins.equal_to_itself, STRONG, "the predicate holds for every row"),
    Rule(doubtful_predicates.reads_no_table, STRONG, "an answer comes from the tables"),
    Rule(doubtful_predicates.always_true, STRONG, "the predicate says nothing"),
    Rule(doubtful_spellings.stored_in_another_case, STRONG, "the comparison holds for no row"),
    Rule(doubtful_spellings.not_stored, STRONG, "the comparison holds for no row"),
    Rule(form, STRONG, "the form of the result differs from the question's"),
    Rule(doubtful_repeats.summed_twice, STRONG, "a row counts as often as the join repeats it"),
    Rule(doubtful_repeats.counted_twice, STRONG, "a row counts as often as the join repeats it"),
    Rule(doubtful_joins.joined_on_no_key, STRONG, "rows that do not belong together are joined"),
    Rule(doubtful_numbers.number_unused, STRONG, "a stated number limits or counts something"),
    Rule(doubtful_numbers.other_way, STRONG, "the words at a number state the sign"),
    Rule(doubtful_numbers.other_bound, STRONG, "the words at a number say whether it is included"),
    Rule(doubtful_periods.other_period, STRONG, "a period ends with its last day"),
    Rule(doubtful_predicates.negation_left_out, STRONG, "a negation excludes something"),
    Rule(doubtful_order.wrong_direction, STRONG, "a superlative has a direction"),
    Rule(doubtful_order.nulls_first, STRONG, "the first of an order have a value"),
    Rule(doubtful_order.wrong_order, STRONG, "a stated order has a direction"),
    Rule(doubtful_order.limit_without_order, STRONG, "the first of no order are any rows"),
    Rule(doubtful_order.limit_left_out, STRONG, "a stated number of rows is a limit"),
    Rule(doubtful_order.superlative_left_out, STRONG, "a superlative sorts or compares"),
    Rule(
        doubtful_aggregates.extreme_left_out, STRONG, "an extreme value is computed or sorted for"
    ),
    Rule(doubtful_aggregates.mean_from_nowhere, STRONG, "a mean needs a word for it", WHOLE),
    Rule(doubtful_aggregates.sum_from_nowhere, STRONG, "a sum needs a word for it", WHOLE),
    Rule(
        doubtful_aggregates.extreme_from_nowhere,
        STRONG,
        "an extreme value needs a superlative",
        WHOLE,
    ),
    Rule(doubtful_aggregates.total_left_out, STRONG, "a total is a sum or a count"),
    Rule(doubtful_aggregates.distinct_left_out, STRONG, "different values are given once"),
    Rule(doubtful_aggregates.share_left_out, STRONG, "a share is a quotient"),
    Rule(
        doubtful_aggregates.whole_division, STRONG, "a quotient of whole numbers is a whole number"
    ),
    Rule(doubtful_predicates.value_not_compared, STRONG, "a selected literal filters nothing"),
    Rule(
        doubtful_predicates.negation_from_nowhere, STRONG, "an exclusion needs a word for it", WHOLE
    ),
    Rule(doubtful_spellings.stated_and_not_stored, WEAK, "the comparison holds for no row"),
    Rule(doubtful_spellings.other_value, WEAK, "a value that the question says is compared"),
    Rule(doubtful_periods.other_side, WEAK, "a period is before or after a bound"),
    Rule(doubtful_aggregates.counts_flags, WEAK, "a count of a flag counts its false values, too"),
    Rule(doubtful_numbers.number_from_nowhere, WEAK, "a predicate comes from the question", WHOLE),
    Rule(doubtful_order.limit_from_nowhere, WEAK, "a limit comes from the question", WHOLE),
    Rule(doubtful_order.one_left_out, WEAK, "one superlative asks for one row"),
    Rule(doubtful_joins.outer_join_undone, WEAK, "a predicate on the optional side drops the rest"),
    Rule(doubtful_joins.counts_missing_rows, WEAK, "a row without a partner counts one"),
    Rule(doubtful_joins.joined_for_nothing, WEAK, "a join may drop or repeat rows", WHOLE),
    Rule(doubtful_groups.other_groups, WEAK, "the word after per or each names the groups"),
    Rule(doubtful_groups.merged_years, WEAK, "equal months of several years are one group"),
    Rule(doubtful_groups.groups_of_equal_names, WEAK, "several rows have one name"),
    Rule(doubtful_groups.table_left_out, WEAK, "a table that the question names has its answer"),
    Rule(doubtful_predicates.wildcard_of_a_letter, WEAK, "the pattern holds for nearly every text"),
    Rule(doubtful_predicates.or_left_out, WEAK, "an alternative needs OR, IN or UNION"),
    Rule(doubtful_predicates.both_as_either, WEAK, "both is no either"),
    Rule(doubtful_predicates.extra_not_null, WEAK, "a predicate comes from the question", WHOLE),
    Rule(doubtful_predicates.name_left_out, WEAK, "a name limits something"),
)
"""In the order in which their problems are told."""


def doubts(case: Case) -> Iterator[tuple[Rule, Doubt]]:
    """The rules that doubt a query, the strong ones first, with their problems and hints."""
    for rule in RULES:
        found = rule.find(case)
        if found is not None:
            yield rule, found
