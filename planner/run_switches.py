"""The names by which ``rules_off`` switches off what runs do beyond the rules of plans."""

PREDICATE_ORDER = "predicate_order"
"""Not a rule of plans: a block learns the order of its predicates while it runs. The name allows
switching it off."""

COMPARISON_STOP = "comparison_stop"
"""Not a rule of plans: a call that is only compared with literals is answered only as far as these
comparisons need (models/services/llama/prefix_check.py)."""

FEW_VALUES_FIRST = "few_values_first"
"""Not a rule of plans: under a limit, the pairs of a join come in an order that needs few distinct
values (engine/run/execution/pair_order.py)."""

LIMITED_STAGES = "limited_stages"
"""Not a rule of plans: stages below a limit's join run no further than it needs
(planner/stages/interleave.py)."""

OF_RUNS = (PREDICATE_ORDER, COMPARISON_STOP, FEW_VALUES_FIRST, LIMITED_STAGES)
