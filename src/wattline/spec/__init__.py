"""What people write: pipelines, policies, facilities, gates, ladders, faults, scenarios and plans."""

from wattline.spec.expression import Expression, ExpressionError, compile_expression
from wattline.spec.facility import FacilityDocument
from wattline.spec.facility_build import build_facility
from wattline.spec.faults import Fault, Faults, Moment
from wattline.spec.gates import compile_gate, gate_metrics
from wattline.spec.ladder import PRESSURE_VARIABLES, Rung, RungDocument, RungKind
from wattline.spec.pipeline import Locality, Phase, Pipeline, Priority, Thermal
from wattline.spec.plan import Plan, PlanChange, PlanCost, PlanOption
from wattline.spec.policy import RULE_STRUCTS, Mode, Policy, Rule, SchedulingClass, Team, Thresholds
from wattline.spec.reader import (
    parse_document,
    read_document,
    read_facility,
    read_faults,
    read_pipeline,
    read_plan,
    read_policy,
    read_scenario,
)
from wattline.spec.scenario import Burst, Condition, Scenario, Workload
from wattline.spec.shipped import (
    find_facility,
    find_plan,
    find_policy,
    find_scenario,
    shipped_facilities,
    shipped_plans,
    shipped_policies,
    shipped_scenarios,
)

__all__ = [
    "PRESSURE_VARIABLES",
    "RULE_STRUCTS",
    "Burst",
    "Condition",
    "Expression",
    "ExpressionError",
    "FacilityDocument",
    "Fault",
    "Faults",
    "Locality",
    "Mode",
    "Moment",
    "Phase",
    "Pipeline",
    "Plan",
    "PlanChange",
    "PlanCost",
    "PlanOption",
    "Policy",
    "Priority",
    "Rule",
    "Rung",
    "RungDocument",
    "RungKind",
    "Scenario",
    "SchedulingClass",
    "Team",
    "Thermal",
    "Thresholds",
    "Workload",
    "build_facility",
    "compile_expression",
    "compile_gate",
    "find_facility",
    "find_plan",
    "find_policy",
    "find_scenario",
    "gate_metrics",
    "parse_document",
    "read_document",
    "read_facility",
    "read_faults",
    "read_pipeline",
    "read_plan",
    "read_policy",
    "read_scenario",
    "shipped_facilities",
    "shipped_plans",
    "shipped_policies",
    "shipped_scenarios",
]
