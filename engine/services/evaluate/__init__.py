"""Measures answers against labels: figures with intervals, wordings and models side by side."""

from blendfusion.services import Service

SERVICE = Service(
    session="session:Evaluations",
    frame="frame:Measuring",
    names={
        "Comparison": "evaluation",
        "Evaluation": "evaluation",
        "Figure": "figures",
        "Improvement": "improve",
        "ModelChoice": "choose_model",
        "StoredCalibration": "calibration_file",
        "StoredQuestion": "question_file",
    },
)
