"""Whether a test reached steady state, and how far its values can be relied on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivelab.report.banners import within
from drivelab.report.facts import fact, given, nothing_if_planned
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.numbers import MISSING, is_missing, names, percent
from drivelab.report.view import Fact

if TYPE_CHECKING:
    import pandas as pd

_FEW = 3


def steadiness(inputs: Inputs, key: Key) -> tuple[Fact, ...]:
    """Of loops and soaks that look for steady state; else how far each value can be relied on."""
    windows, soaks = inputs.of_key("steady_state", key), _soaks(inputs.frame_of("cells", key))
    values = _verdicts(inputs.of_key("summary", key))
    if not windows and not soaks:
        stop = nothing_if_planned(inputs.plans_of(key), "does not stop at steady state")
        return (fact("Reached", stop), *values)
    missed = [row["variable"] for row in windows if not row["reached"]] + [name for name, span in soaks if not span]
    some = f": {names(list(dict.fromkeys(missed)))}" if len(missed) < len(windows) + len(soaks) else ""
    rounds = dict.fromkeys(f"{row['window_start']} to {row['window_end']} of {row['rounds']}" for row in windows)
    spans = [*([f"rounds {'; '.join(rounds)}"] if rounds else []), *dict.fromkeys(span for _, span in soaks if span)]
    reached = fact("Reached", f"NO{some}" if missed else "YES", "bad" if missed else "good")
    found = (reached, *given("Window", "; ".join(spans)))
    if not windows:
        return (*found, *values)
    return (
        *found,
        fact("Variables", f"{sum(map(within, windows))} of {len(windows)} within the limits"),
        fact(
            "Largest residual drift",
            percent(max((r["residual_drift_pct"] for r in windows), key=_magnitude), signed=True),
        ),
    )


def _soaks(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Each soak with a rule for steady state, and the slices of its window; these are empty where it found none."""
    if not {"ended_by", "cell_label"} <= set(cells):
        return []
    found = []
    for (_, label), of in cells[cells["ended_by"].notna()].groupby(["recording", "cell_label"], sort=False):
        window = of.loc[of["in_window"].astype(bool), "round"]
        span = f"slices {window.min()} to {window.max()} of {of['round'].max()}"
        found.append((str(label), span if (of["ended_by"] == "steady state").all() else ""))
    return found


def _verdicts(summary: list[Row]) -> tuple[Fact, ...]:
    """What is said of the values, with their cells where it is not the same of all."""
    found: dict[str, dict[str, None]] = {}
    for row in summary:
        if not is_missing(row.get("verdict")):
            found.setdefault(str(row["verdict"]), {})[str(row["cell_label"])] = None
    if len(found) < 2:
        return (fact("Values are", next(iter(found), MISSING)),)
    return tuple(fact(f"Values: {verdict}", _few(list(cells))) for verdict, cells in found.items())


def _few(cells: list[str]) -> str:
    return "; ".join([*cells[:_FEW], *([f"and {len(cells) - _FEW} more"] if len(cells) > _FEW else [])])


def _magnitude(value: Any) -> float:
    return -1.0 if is_missing(value) else abs(float(value))
