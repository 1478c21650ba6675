"""Subqueries that give calls their options, their worked examples and their samples."""

from blendfusion.services import Service

SERVICE = Service(subqueries="tasks")
