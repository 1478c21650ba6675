"""The rules, in order. Each is a function from a relation to a relation, in a file of its own.

The driver works upwards from the tables: it applies the first rule that fires to each relation,
until none does, and continues with the relation above. Rules marked ``first`` run once before, from
the top. Rules marked ``last`` run once over the finished plan, because they need to see the whole
plan; one marked ``at_end`` runs once behind them, from the top. A rule that does not fire returns
the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from blendfusion.errors import OptionError, close_matches
from blendfusion.options import Options
from blendfusion.planner.ir.nodes import Plan
from blendfusion.planner.rules.answers_with_partners import answers_with_partners
from blendfusion.planner.rules.call_extraction import call_extraction
from blendfusion.planner.rules.cheap_joins_first import cheap_joins_first
from blendfusion.planner.rules.columns_that_meet import columns_that_meet
from blendfusion.planner.rules.copied_predicates import copied_predicates
from blendfusion.planner.rules.costly_predicates_last import costly_predicates_last
from blendfusion.planner.rules.cross_joins import cross_joins
from blendfusion.planner.rules.extreme_values import extreme_values
from blendfusion.planner.rules.first_rows import first_rows
from blendfusion.planner.rules.implied_predicates import implied_predicates
from blendfusion.planner.rules.inner_joins import inner_joins
from blendfusion.planner.rules.join_tree_reduction import join_tree_reduction
from blendfusion.planner.rules.joins_by_labels import joins_by_labels
from blendfusion.planner.rules.joins_by_meaning import joins_by_meaning
from blendfusion.planner.rules.joins_over_pairs import joins_over_pairs
from blendfusion.planner.rules.late_projection import late_projection
from blendfusion.planner.rules.lazy_aggregate_arguments import lazy_aggregate_arguments
from blendfusion.planner.rules.lazy_join_conditions import lazy_join_conditions
from blendfusion.planner.rules.limited_joins import limited_joins
from blendfusion.planner.rules.marks_that_matter import marks_that_matter
from blendfusion.planner.rules.merge_blocks import merge_blocks
from blendfusion.planner.rules.necessary_conditions import necessary_conditions
from blendfusion.planner.rules.one_of_equal_rows import one_of_equal_rows
from blendfusion.planner.rules.partners_in_order import partners_in_order
from blendfusion.planner.rules.prune_columns import prune_columns
from blendfusion.planner.rules.pull_up import pull_up
from blendfusion.planner.rules.push_cheap_predicates import push_cheap_predicates
from blendfusion.planner.rules.push_limit import push_limit
from blendfusion.planner.rules.ranked_limits import ranked_limits
from blendfusion.planner.rules.ranked_partitions import ranked_partitions
from blendfusion.planner.rules.rows_of_other_branches import rows_of_other_branches
from blendfusion.planner.rules.semi_join_reduction import semi_join_reduction
from blendfusion.planner.rules.similar_first import similar_first
from blendfusion.planner.rules.small_groups import small_groups
from blendfusion.planner.rules.subquery_columns import subquery_columns
from blendfusion.planner.rules.union_pull_up import union_pull_up
from blendfusion.planner.rules.whole_columns import whole_columns


class Rule(NamedTuple):
    name: str
    apply: Callable[[Plan], Plan]
    required: bool = False
    """Whether the plan cannot run without the rule, so that it cannot be switched off."""
    first: bool = False
    """Whether the rule is applied once to the whole plan, before all other rules."""
    last: bool = False
    """Whether the rule is applied once to every relation, after all other rules."""
    at_end: bool = False
    """Whether the rule is applied once to the whole plan, after these."""


SIMILAR_FIRST = "similar_first"
"""A rule with an option of its own. Beside the plan, it takes a function that judges where it pays.
"""

COSTLY_PREDICATES_LAST = "costly_predicates_last"
"""A rule that takes a function beside the plan: what is expected of predicates."""

RULES: tuple[Rule, ...] = (
    Rule("inner_joins", inner_joins, first=True),  # so that the others meet joins that move
    Rule("marks_that_matter", marks_that_matter, first=True),  # while a join has its condition
    Rule("rows_of_other_branches", rows_of_other_branches, first=True),  # before they are one block
    Rule("whole_columns", whole_columns, True),  # while a call stands over the rows of its column
    Rule("ranked_limits", ranked_limits),  # before a limit becomes a block's own
    Rule("ranked_partitions", ranked_partitions),  # while calls stand over the rows of the windows
    Rule("joins_by_labels", joins_by_labels),  # before its labels become keys, or columns of pairs
    Rule("joins_by_meaning", joins_by_meaning),  # before its call becomes one like the others
    Rule("joins_over_pairs", joins_over_pairs, True),  # what is left of those joins
    Rule("necessary_conditions", necessary_conditions),  # while a filter is a filter
    Rule("call_extraction", call_extraction, True),  # makes the blocks that the others move
    Rule("subquery_columns", subquery_columns, True),  # a chunk cannot see the subquery's tables
    Rule("merge_blocks", merge_blocks),  # before the rest, so that they meet one block, not two
    Rule("implied_predicates", implied_predicates),  # before cheap-first: what it leaves is cheap
    Rule(
        "push_cheap_predicates", push_cheap_predicates
    ),  # before pull-up: a cheap predicate should sink at once
    Rule("copied_predicates", copied_predicates),  # before pull-up takes one of the two away
    Rule("pull_up", pull_up),
    Rule("union_pull_up", union_pull_up),  # beside it: a union stands below a join, or above one
    Rule("cheap_joins_first", cheap_joins_first),  # what pull-up is for predicates, for joins
    Rule("extreme_values", extreme_values),  # before late_projection: it makes a sort and a limit
    Rule("late_projection", late_projection),  # before push_limit: an unfiltered LIMIT sinks
    Rule("limited_joins", limited_joins),  # before the limit becomes a block's own
    Rule("push_limit", push_limit),
    Rule(
        "lazy_aggregate_arguments", lazy_aggregate_arguments
    ),  # before the columns that it no longer needs go
    Rule("prune_columns", prune_columns),  # when it is clear what a block must carry
    # Last: when no limit comes down any more, and it is clear which blocks could not move up.
    Rule("first_rows", first_rows, last=True),
    Rule("partners_in_order", partners_in_order, last=True),
    Rule("cross_joins", cross_joins, last=True),
    Rule("answers_with_partners", answers_with_partners, last=True),  # as many calls as it gets
    Rule(
        COSTLY_PREDICATES_LAST, costly_predicates_last, last=True
    ),  # when no limit is left to move
    Rule("small_groups", small_groups, last=True),  # when the block stands below its aggregate
    Rule("join_tree_reduction", join_tree_reduction, last=True),  # before a side is a partner
    Rule(
        "lazy_join_conditions", lazy_join_conditions, last=True
    ),  # rows that must stay, before the others
    Rule("semi_join_reduction", semi_join_reduction, last=True),
    Rule("one_of_equal_rows", one_of_equal_rows, last=True),  # when a block has its last columns
    Rule(SIMILAR_FIRST, similar_first, last=True),  # when a limit has come down all the way
    Rule("columns_that_meet", columns_that_meet, True, at_end=True),  # when no domain changes
)

PREDICATE_ORDER = "predicate_order"
"""Not a rule of plans: a block learns the order of its predicates while it runs. The name allows
switching it off."""

COMPARISON_STOP = "comparison_stop"
"""Not a rule of plans: a call that is only compared with literals is answered only as far as these
comparisons need (models/constraints/prefix_check.py)."""

FEW_VALUES_FIRST = "few_values_first"
"""Not a rule of plans: under a limit, the pairs of a join come in an order that needs few distinct
values (engine/execution/pair_order.py)."""

LIMITED_STAGES = "limited_stages"
"""Not a rule of plans: stages below a limit's join run no further than it needs
(planner/stages/interleave.py)."""

_OF_RUNS = (PREDICATE_ORDER, COMPARISON_STOP, FEW_VALUES_FIRST, LIMITED_STAGES)


def rules_off(options: Options) -> tuple[str, ...]:
    """The rules that a session switches off: those that it names, and the one with its own
    option."""
    unasked = (SIMILAR_FIRST,) if options.similar_first is False else ()
    return (*checked_names(options.rules_off), *unasked)


def checked_names(text: str) -> tuple[str, ...]:
    """The rules named in ``text``, separated by commas. Raises OptionError for unknown and required
    rules."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    free = [*(rule.name for rule in RULES if not rule.required), *_OF_RUNS]
    for name in names:
        if name not in free:
            raise OptionError(f"no rule '{name}' to switch off", hint=close_matches(name, free))
    return names
