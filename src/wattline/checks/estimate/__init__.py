"""What a run will take and cost, how sure that is, and whether another is worth it."""

from wattline.checks.estimate.accuracy import Accuracy, Compared, look_back
from wattline.checks.estimate.costing import PhaseCost, place_alone, price_phase
from wattline.checks.estimate.durations import Lasting, combine, planned_steps, predict_lasting
from wattline.checks.estimate.estimating import Estimated, estimate_run, span_of
from wattline.checks.estimate.marginal import Goal, Trial, goal_of, trials_of, weigh_runs
from wattline.checks.estimate.quota import left_of
from wattline.checks.estimate.records import Record, RecordedRun, gather_records, gather_runs

__all__ = [
    "Accuracy",
    "Compared",
    "Estimated",
    "Goal",
    "Lasting",
    "PhaseCost",
    "Record",
    "RecordedRun",
    "Trial",
    "combine",
    "estimate_run",
    "gather_records",
    "gather_runs",
    "goal_of",
    "left_of",
    "look_back",
    "place_alone",
    "planned_steps",
    "predict_lasting",
    "price_phase",
    "span_of",
    "trials_of",
    "weigh_runs",
]
