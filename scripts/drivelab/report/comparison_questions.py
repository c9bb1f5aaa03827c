"""Which question of the comparison a value answers."""

from __future__ import annotations

from drivelab.report.document import APPLICATIONS, LATENCY, SATURATION, TAILS, THROUGHPUT
from drivelab.report.inputs import Inputs

_LATENCIES = ("mean_latency_us", "read_mean_latency_us", "write_mean_latency_us", "p50_latency_us", "p90_latency_us",
              "best_mean_latency_us")  # fmt: skip


def question_of(inputs: Inputs, measurement: str, metric: str) -> str:
    """Return the question that a value answers: by its measurement, else by its metric."""
    if measurement in inputs.of_applications:
        return APPLICATIONS
    if metric not in _LATENCIES and metric.endswith("_us"):
        return TAILS
    if measurement in inputs.of_saturation:
        return SATURATION
    return LATENCY if metric in _LATENCIES else THROUGHPUT


def main_question(inputs: Inputs, measurement: str) -> str:
    """Return the question of a measurement: that of the first variable by which it finds steady state, or of IOPS."""
    return question_of(inputs, measurement, next((metric for _, metric in inputs.tracked(measurement)), "iops"))
