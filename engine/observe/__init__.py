"""Progress for people, and the rates that were measured."""
