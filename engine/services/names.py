"""The public names that services and programs add, for type checkers: at run time they are those of
their declarations."""

from __future__ import annotations

from blendfusion.apps.notebooks.accessors import add_accessors, sql
from blendfusion.apps.notebooks.magic import load_ipython_extension
from blendfusion.services.approximate.within import Within
from blendfusion.services.dbapi import module as dbapi
from blendfusion.services.dialects.suql.open_during import open_during
from blendfusion.services.evaluate.calibration_file import StoredCalibration
from blendfusion.services.evaluate.choose_model import ModelChoice
from blendfusion.services.evaluate.evaluation import Comparison, Evaluation
from blendfusion.services.evaluate.figures import Figure
from blendfusion.services.evaluate.improve import Improvement
from blendfusion.services.evaluate.question_file import StoredQuestion
from blendfusion.services.independence.check import Independence
from blendfusion.services.plain_functions.register import register
from blendfusion.services.replay.manifest import Manifest
from blendfusion.services.search.build import IndexReport

__all__ = [
    "Comparison",
    "Evaluation",
    "Figure",
    "Improvement",
    "Independence",
    "IndexReport",
    "Manifest",
    "ModelChoice",
    "StoredCalibration",
    "StoredQuestion",
    "Within",
    "add_accessors",
    "dbapi",
    "load_ipython_extension",
    "open_during",
    "register",
    "sql",
]
