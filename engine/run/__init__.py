"""Runs plans: executes, estimates, observes and reports them."""
