"""What ends a step, in base units: steady state, agreement of repeats, a number of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.values import duration_s, share_of
from drivelab.units import parse_share


def excursions(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Window and excursions of a steady state, which may go beyond the mean: the wider, the more is called steady."""
    return {
        "window": rule["window"],
        "data_excursion": parse_share(rule["data_excursion"]),
        "slope_excursion": parse_share(rule["slope_excursion"]),
    }


def repeats(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Of a step whose `until` is a number of `rounds` or `passes`, or a relative standard error."""
    if "relative_standard_error" not in rule:
        return dict(rule)
    wanted = rule["relative_standard_error"]
    with at("relative_standard_error"):
        return {"threshold": share_of(wanted, "threshold"), "metric": wanted["metric"]}


def steady_soak(rule: Mapping[str, Any], slice_s: float) -> dict[str, Any]:
    """Of a soak until steady state; raises MisfitError when its spans are no whole number of slices."""
    every_s = duration_s(rule, "every") if "every" in rule else slice_s
    slices = every_s / slice_s
    if round(slices) < 1 or abs(slices - round(slices)) > 1e-6:
        raise MisfitError(
            f"its spans of {every_s:g} s are no multiple of the slice of {slice_s:g} s; change 'every' or 'slice'"
        )
    return {"every_s": every_s, **excursions(rule), "metric": rule["metric"]}
