"""Resolve stop rules: steady state, agreement, or a number of repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.values import duration_s, share_of
from drivelab.units import parse_share


def excursions(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return window and excursions of a steady state.

    Excursions above 100 % of the mean are permitted.
    """
    return {
        "window": rule["window"],
        "data_excursion": parse_share(rule["data_excursion"]),
        "slope_excursion": parse_share(rule["slope_excursion"]),
    }


def repeats(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stop rule for `rounds`, `passes` or a relative standard error."""
    if "relative_standard_error" not in rule:
        return dict(rule)
    wanted = rule["relative_standard_error"]
    with at("relative_standard_error"):
        return {"threshold": share_of(wanted, "threshold"), "metric": wanted["metric"]}


def steady_soak(rule: Mapping[str, Any], slice_s: float) -> dict[str, Any]:
    """Return the steady-state rule of a soak.

    Raises MisfitError if its spans are not whole slices.
    """
    every_s = duration_s(rule, "every") if "every" in rule else slice_s
    slices = every_s / slice_s
    if round(slices) < 1 or abs(slices - round(slices)) > 1e-6:
        raise MisfitError(
            f"its spans of {every_s:g} s are not a multiple of the slice of {slice_s:g} s; change 'every' or 'slice'"
        )
    return {"every_s": every_s, **excursions(rule), "metric": rule["metric"]}
