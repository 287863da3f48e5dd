"""What people write: pipelines, policies, facilities, gates, ladders and faults."""

from wattline.spec.expression import Expression, ExpressionError, compile_expression
from wattline.spec.facility import FacilityDocument
from wattline.spec.facility_build import build_facility
from wattline.spec.faults import Fault, Faults, Moment
from wattline.spec.gates import compile_gate, gate_metrics
from wattline.spec.ladder import PRESSURE_VARIABLES, Rung, RungDocument, RungKind
from wattline.spec.pipeline import Locality, Phase, Pipeline, Priority, Thermal
from wattline.spec.policy import RULE_STRUCTS, Mode, Policy, Rule, SchedulingClass, Team, Thresholds
from wattline.spec.reader import (
    parse_document,
    read_document,
    read_facility,
    read_faults,
    read_pipeline,
    read_policy,
)
from wattline.spec.shipped import find_facility, find_policy, shipped_facilities, shipped_policies

__all__ = [
    "PRESSURE_VARIABLES",
    "RULE_STRUCTS",
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
    "Policy",
    "Priority",
    "Rule",
    "Rung",
    "RungDocument",
    "RungKind",
    "SchedulingClass",
    "Team",
    "Thermal",
    "Thresholds",
    "build_facility",
    "compile_expression",
    "compile_gate",
    "find_facility",
    "find_policy",
    "gate_metrics",
    "parse_document",
    "read_document",
    "read_facility",
    "read_faults",
    "read_pipeline",
    "read_policy",
    "shipped_facilities",
    "shipped_policies",
]
