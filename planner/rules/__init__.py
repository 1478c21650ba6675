"""The rules, in order. Each is a function from a relation to a relation, in a file of its own.

The driver works upwards from the tables: it applies the first rule that fires to each relation,
until none does, and continues with the relation above. Rules marked ``first`` run once before, from
the top. Rules marked ``last`` run once over the finished plan, because they need to see the whole
plan; one marked ``at_end`` runs once behind them, from the top. A rule that does not fire returns
the same object, and is not applied where its kinds of relations do not occur.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from blendfusion.errors import OptionError, close_matches
from blendfusion.options import Options
from blendfusion.planner.ir.nodes import Plan
from blendfusion.planner.rules.answers_with_partners import answers_with_partners
from blendfusion.planner.rules.anti_joins import anti_joins
from blendfusion.planner.rules.argument_casts import argument_casts
from blendfusion.planner.rules.call_extraction import call_extraction
from blendfusion.planner.rules.cheap_joins_first import cheap_joins_first
from blendfusion.planner.rules.chosen_rows import chosen_rows
from blendfusion.planner.rules.columns_that_meet import columns_that_meet
from blendfusion.planner.rules.constant_tests import constant_tests
from blendfusion.planner.rules.copied_predicates import copied_predicates
from blendfusion.planner.rules.costly_predicates_last import costly_predicates_last
from blendfusion.planner.rules.cross_joins import cross_joins
from blendfusion.planner.rules.first_rows import first_rows
from blendfusion.planner.rules.greatest_groups import greatest_groups
from blendfusion.planner.rules.groups_that_may_pass import groups_that_may_pass
from blendfusion.planner.rules.implied_predicates import implied_predicates
from blendfusion.planner.rules.inner_joins import inner_joins
from blendfusion.planner.rules.join_tree_reduction import join_tree_reduction
from blendfusion.planner.rules.joins_by_labels import joins_by_labels
from blendfusion.planner.rules.joins_by_meaning import joins_by_meaning
from blendfusion.planner.rules.joins_over_pairs import joins_over_pairs
from blendfusion.planner.rules.keys_of_sets import keys_of_sets
from blendfusion.planner.rules.late_projection import late_projection
from blendfusion.planner.rules.lazy_aggregate_arguments import lazy_aggregate_arguments
from blendfusion.planner.rules.lazy_join_conditions import lazy_join_conditions
from blendfusion.planner.rules.limited_joins import limited_joins
from blendfusion.planner.rules.marks_that_matter import marks_that_matter
from blendfusion.planner.rules.merge_blocks import merge_blocks
from blendfusion.planner.rules.necessary_conditions import necessary_conditions
from blendfusion.planner.rules.needs import needs
from blendfusion.planner.rules.partners_in_order import partners_in_order
from blendfusion.planner.rules.prune_columns import prune_columns
from blendfusion.planner.rules.pull_up import pull_up
from blendfusion.planner.rules.push_cheap_predicates import push_cheap_predicates
from blendfusion.planner.rules.push_limit import push_limit
from blendfusion.planner.rules.ranked_limits import ranked_limits
from blendfusion.planner.rules.rows_of_other_branches import rows_of_other_branches
from blendfusion.planner.rules.rows_that_count import rows_that_count
from blendfusion.planner.rules.semi_join_reduction import semi_join_reduction
from blendfusion.planner.rules.similar_first import similar_first
from blendfusion.planner.rules.subquery_columns import subquery_columns
from blendfusion.planner.rules.tied_keys import tied_keys
from blendfusion.planner.rules.tied_partitions import tied_partitions
from blendfusion.planner.rules.tied_rows import tied_rows
from blendfusion.planner.rules.undecided_groups import undecided_groups
from blendfusion.planner.rules.union_pull_up import union_pull_up
from blendfusion.planner.rules.unordered_aggregates import unordered_aggregates
from blendfusion.planner.rules.unread_joins import unread_joins
from blendfusion.planner.rules.whole_columns import whole_columns
from blendfusion.planner.run_switches import OF_RUNS

CALLS = "calls"
"""Among the kinds of relations of a rule: those whose own expressions contain a call."""


class Rule(NamedTuple):
    name: str
    apply: Callable[[Plan], Plan]
    on: tuple[str, ...] = ()
    """The kinds of relations on which it may fire, of which CALLS are those whose own expressions
    contain a call; none: all. The driver leaves out the others."""
    required: bool = False
    """Whether the plan cannot run without the rule, so that it cannot be switched off."""
    first: bool = False
    """Whether the rule is applied once to the whole plan, before all other rules."""
    last: bool = False
    """Whether the rule is applied once to every relation, after all other rules."""
    from_top: bool = False
    """Whether a rule that is ``last`` is applied once to the whole plan."""
    at_end: bool = False
    """Whether the rule is applied once to the whole plan, after these."""


SIMILAR_FIRST = "similar_first"
"""A rule with an option of its own. Beside the plan, it takes a function that judges where it pays.
"""

CONSTANT_TESTS = "constant_tests"
"""A rule that takes a function beside the plan: the outcomes of a condition, for all answers."""

COSTLY_PREDICATES_LAST = "costly_predicates_last"
"""A rule that takes a function beside the plan: what is expected of predicates."""

RULES: tuple[Rule, ...] = (
    Rule("inner_joins", inner_joins, first=True),  # so that the others meet joins that move
    Rule("anti_joins", anti_joins, first=True),  # before a condition makes its right side a block
    Rule("keys_of_sets", keys_of_sets, first=True),  # while its filter stands above
    Rule("unread_joins", unread_joins, first=True),  # behind it: inner joins drop rows
    Rule("marks_that_matter", marks_that_matter, first=True),  # while a join has its condition
    Rule("rows_of_other_branches", rows_of_other_branches, first=True),  # before they are one block
    Rule("greatest_groups", greatest_groups, first=True),  # while both readings of them are equal
    Rule("unordered_aggregates", unordered_aggregates, (CALLS,)),  # before an order is a column
    # Before a condition becomes keys, or columns.
    Rule(CONSTANT_TESTS, constant_tests, (CALLS, "block")),
    # While a call stands over the rows of its column.
    Rule("whole_columns", whole_columns, (CALLS, "set"), required=True),
    # Before a limit is a block's own, and while calls stand over the rows of windows.
    Rule("ranked_limits", ranked_limits, ("filter", "fetch", "project")),
    Rule("joins_by_labels", joins_by_labels, (CALLS,)),  # before its labels become keys, or columns
    Rule("joins_by_meaning", joins_by_meaning, ("filter", "join")),  # before its call is like any
    Rule("joins_over_pairs", joins_over_pairs, ("join",), required=True),  # what is left of those
    # Before a filter or a block comes between.
    Rule("argument_casts", argument_casts, (CALLS, "block"), required=True),
    Rule("necessary_conditions", necessary_conditions, (CALLS, "block")),  # while filters are so
    Rule("call_extraction", call_extraction, (CALLS,), required=True),  # makes blocks, which move
    # A chunk cannot see the subquery's tables.
    Rule("subquery_columns", subquery_columns, ("block",), required=True),
    # Before the rest, so that they meet one block, not two.
    Rule("merge_blocks", merge_blocks, ("block", "filter", "project")),
    Rule("implied_predicates", implied_predicates, ("block",)),  # before: what it leaves is cheap
    # Before pull-up: a cheap predicate should sink at once.
    Rule("push_cheap_predicates", push_cheap_predicates, ("block",)),
    Rule("copied_predicates", copied_predicates, ("join",)),  # before pull-up takes one of the two
    Rule("pull_up", pull_up, ("join", "cross")),
    # Beside it: a union stands below a join, or above one.
    Rule("union_pull_up", union_pull_up, ("set", "fetch")),
    # What pull-up is for predicates, for joins.
    Rule("cheap_joins_first", cheap_joins_first, ("join", "cross", "filter")),
    Rule("rows_that_count", rows_that_count, ("aggregate",)),  # before a sort of these rows
    # Before push_limit: an unfiltered LIMIT sinks.
    Rule("late_projection", late_projection, ("sort", "fetch")),
    Rule("limited_joins", limited_joins, ("fetch",)),  # before the limit becomes a block's own
    Rule("push_limit", push_limit, ("fetch", "join")),
    Rule("chosen_rows", chosen_rows, ("aggregate", "project")),  # leaves few columns
    # Before the columns that it no longer needs go.
    Rule("lazy_aggregate_arguments", lazy_aggregate_arguments, ("aggregate",)),
    # When it is clear what a block must carry.
    Rule("prune_columns", prune_columns, ("aggregate",)),
    # Last: when no limit comes down any more, and it is clear which blocks could not move up.
    Rule("first_rows", first_rows, ("fetch",), last=True),
    Rule("partners_in_order", partners_in_order, ("fetch",), last=True),
    Rule("cross_joins", cross_joins, ("block",), last=True),
    # As many calls as it gets.
    Rule("answers_with_partners", answers_with_partners, ("join",), last=True),
    # When no limit is left to move.
    Rule(COSTLY_PREDICATES_LAST, costly_predicates_last, ("join",), last=True),
    # When the block stands below its aggregate.
    Rule("tied_partitions", tied_partitions, ("filter", "project", "aggregate"), last=True),
    Rule("tied_keys", tied_keys, ("project",), last=True),  # behind it: what no limit bounds
    # Before a side is a partner.
    Rule("join_tree_reduction", join_tree_reduction, ("join", "cross"), last=True),
    # Rows that must stay, before the others.
    Rule("lazy_join_conditions", lazy_join_conditions, ("block", "project"), last=True),
    Rule("semi_join_reduction", semi_join_reduction, ("join", "cross"), last=True),
    # When a block has its last source.
    Rule("groups_that_may_pass", groups_that_may_pass, ("filter",), last=True),
    # From the top, where tests and limits stand; before others that end blocks early.
    Rule("undecided_groups", undecided_groups, last=True, from_top=True),
    # When a block has its last columns and rows.
    Rule("needs", needs, last=True, from_top=True),
    # When a limit has come down all the way.
    Rule(SIMILAR_FIRST, similar_first, ("block",), last=True),
    # From the top, where a limit stands; when blocks have their last predicates.
    Rule("tied_rows", tied_rows, at_end=True),
    # When no domain changes.
    Rule("columns_that_meet", columns_that_meet, required=True, at_end=True),
)

FORMER = {
    **dict.fromkeys(("first_groups", "first_of_groups", "one_of_equal_rows"), "needs"),
    **dict.fromkeys(("any_of_group", "compared_counts", "extreme_values"), "undecided_groups"),
    **dict.fromkeys(("separate_aggregates", "small_groups"), "undecided_groups"),
    "ranked_partitions": "ranked_limits",
}
"""Former rules, by name, and the rule that does the same now. It is switched off by their names,
too."""


def rules_off(options: Options) -> tuple[str, ...]:
    """The rules that a session switches off: those that it names, and the one with its own
    option."""
    unasked = (SIMILAR_FIRST,) if options.similar_first is False else ()
    return (*checked_names(options.rules_off), *unasked)


def checked_names(text: str) -> tuple[str, ...]:
    """The rules named in ``text``, separated by commas. Raises OptionError for unknown and required
    rules."""
    given = (name.strip() for name in text.split(",") if name.strip())
    names = tuple(FORMER.get(name, name) for name in given)
    free = [*(rule.name for rule in RULES if not rule.required), *OF_RUNS]
    for name in names:
        if name not in free:
            raise OptionError(f"no rule '{name}' to switch off", hint=close_matches(name, free))
    return names
