"""The planner's nodes, and functions over them."""
