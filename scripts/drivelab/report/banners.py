"""The closed list of limitations of the numbers, each with its meaning and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from drivelab.analysis import limits
from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.verdict import NOT_STEADY, RSE_TOO_HIGH, TOO_FEW_RUNS
from drivelab.report import disturbances
from drivelab.report.disturbances import Concern, keys_of
from drivelab.report.inputs import Inputs, Row
from drivelab.report.measurement_outcome import in_few_recordings
from drivelab.report.numbers import is_missing, metric_name
from drivelab.report.view import Banner, Link


def banners(inputs: Inputs) -> tuple[Banner, ...]:
    """Return the banners that apply, most severe first."""
    applicable = ((label, _LIMITS[label]) for label in limits.LABELS if label in _LIMITS)
    return tuple(banner for label, limit in applicable if (banner := limit.banner(label, inputs)) is not None)


def labels_of(anchor: str, applicable: tuple[Banner, ...]) -> tuple[str, ...]:
    """Return the labels of the banners that concern the page at `anchor`."""
    return tuple(banner.label for banner in applicable if any(link.anchor == anchor for link in banner.affected))


def within(window: Row) -> bool:
    """Return whether a tracked variable kept both limits in the window, regardless of the others."""
    return bool(
        window["measured_data_excursion"] <= window["allowed_data_excursion"]
        and window["measured_slope_excursion"] <= window["allowed_slope_excursion"]
    )


@dataclass(frozen=True)
class _Limit:
    id: str
    title: str
    meaning: str
    find: Callable[[Inputs], Concern]

    def banner(self, label: str, inputs: Inputs) -> Banner | None:
        keys, reasons = self.find(inputs)
        links = tuple(Link(" · ".join(key), inputs.anchors[key]) for key in keys)
        texts = tuple(dict.fromkeys(reasons))
        return Banner(self.id, label, self.title, self.meaning, links, texts) if links or texts else None


def _test(row: Row) -> str:
    return f"{row['drive']} · {row['measurement']}"


def _excluded(inputs: Inputs) -> Concern:
    rows = inputs.tables["exclusions"]
    return keys_of(inputs, rows), (f"{row['recording']}, {row['place']}: {row['words']}" for row in rows)


def _also_differs(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["differences"] if not row["intended"] and not _unknown(row)]
    return keys_of(inputs, _compared(rows)), _of_pairs(rows, "facet")


def _not_recorded(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["differences"] if _unknown(row)]
    if all(row["intended"] for row in rows):
        return (), ()
    facets: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        facets.setdefault((row["comparison"], row["basis"]), set()).add(row["facet"])
    return keys_of(inputs, _compared(rows)), (
        f"{drive} against {basis}: {not_recorded_words(len(names))}" for (drive, basis), names in facets.items()
    )


def _unknown(row: Row) -> bool:
    return unknown(row["basis_value"], row["comparison_value"])


def _compared(rows: Iterable[Row]) -> Iterator[Row]:
    return ({"drive": row["comparison"], "measurement": row["measurement"]} for row in rows)


def _of_pairs(rows: Iterable[Row], name: str) -> Iterator[str]:
    """Yield the distinct values of column `name` for each compared pair."""
    values_by_pair: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        values_by_pair.setdefault((row["comparison"], row["basis"]), {})[str(row[name])] = None
    return (f"{drive} against {basis}: {', '.join(values)}" for (drive, basis), values in values_by_pair.items())


def _imported(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["summary"] if limits.is_imported(row["recordings"])]
    return keys_of(inputs, rows), (f"{_test(row)}: {row['protocol']}" for row in rows)


def _partial(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["replays"] if row["partial"] or row["errors"]]
    return keys_of(inputs, rows), (
        f"{_test(row)}: {row['trace']}, run {row['repeat']}: {'; '.join(row['marks'])}" for row in rows
    )


def _not_steady(inputs: Inputs) -> Concern:
    missed = [row for row in inputs.tables["steady_state"] if not row["reached"]]
    by_verdict = [row for row in inputs.tables["summary"] if row["verdict"] == NOT_STEADY]
    reasons = [_unsteady_loop([row for row in missed if row["recording"] == recording], recording)
               for recording in dict.fromkeys(row["recording"] for row in missed)]  # fmt: skip
    loops = keys_of(inputs, missed)
    for key in keys_of(inputs, by_verdict):
        labels = dict.fromkeys(row["cell_label"] for row in by_verdict if (row["drive"], row["measurement"]) == key)
        if key not in loops:
            reasons.append(f"{key[0]} · {key[1]}: {', '.join(labels)} still changed at the end")
    return keys_of(inputs, [*missed, *by_verdict]), reasons


def _unsteady_loop(windows: list[Row], recording: str) -> str:
    outside = [f"{row['variable']} ({metric_name(row['metric'])})" for row in windows if not within(row)]
    which = f"; outside the limits in the last window: {', '.join(outside)}" if outside else ""
    return f"{recording}: not steady after {windows[0]['rounds']} rounds{which}"


def _not_repeatable(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["summary"] if row["verdict"] in {RSE_TOO_HIGH, TOO_FEW_RUNS}]
    return keys_of(inputs, rows), (
        f"{_test(row)}: {row['cell_label']}, {metric_name(row['metric'])}: {row['verdict']}" for row in rows
    )


def _few_recordings(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["deltas"] if in_few_recordings(row)]
    sides = (
        {"drive": row[side], "measurement": row["measurement"]} for row in rows for side in ("basis", "comparison")
    )
    return keys_of(inputs, sides), _of_pairs(rows, "measurement")


def _lossy(inputs: Inputs) -> Concern:
    traces = [row for row in inputs.tables["traces"] if row.get("lossy") is True]
    names = {row["trace"] for row in traces}
    return keys_of(inputs, (row for row in inputs.tables["replays"] if row["trace"] in names)), (
        f"{row['trace']}: "
        + ("number lost not recorded" if is_missing(row.get("lost")) else f"{int(row['lost']):,} lost")
        for row in traces
    )


def _simulated(inputs: Inputs) -> Concern:
    rows = [row for row in inputs.tables["application_runs"] if not is_missing(row["simulated_from"])]
    return keys_of(inputs, rows), (
        f"{row['application']}: replay of the trace '{row['simulated_from']}'" for row in rows
    )


def _clock(inputs: Inputs) -> Concern:
    reasons = (plan["clock_reason"] for plan in inputs.plans if not is_missing(plan.get("clock_reason")))
    return [key for key in inputs.keys if inputs.on_virtual_clock(key)], (f"Reason: {reason}" for reason in reasons)


def _virtual(inputs: Inputs) -> Concern:
    return [key for key in inputs.keys if inputs.flag(key, "virtual")], ()


def _not_purged(inputs: Inputs) -> Concern:
    unpurged = limits.not_purged(inputs.frame("conditions"))
    return [key for key in inputs.keys if key in unpurged], ()


def _reduced(inputs: Inputs) -> Concern:
    reasons = (f"{plan['measurement']}: {why}" for plan in inputs.plans for why in plan.get("reduced_why") or ())
    return [key for key in inputs.keys if inputs.flag(key, "reduced")], reasons


_LIMITS = {
    limits.EXCLUDED: _Limit(
        "excluded", "Excluded from every result",
        "These data are unreliable. No average, window, percentile or comparison contains them.",
        _excluded,
    ),
    limits.ALSO_DIFFERS: _Limit(
        "also-differs", "Unintended differences",
        "The compared drives also differ in something that the study did not intend. It may explain a delta.",
        _also_differs,
    ),
    limits.NOT_RECORDED: _Limit(
        "not-recorded", "Conditions not recorded",
        "Nobody knows whether these conditions are equal for the compared drives. They may explain a delta. The "
        "comparison lists them.",
        _not_recorded,
    ),
    limits.IMPORTED: _Limit(
        "imported", "Imported: conditions not recorded",
        "Someone else measured these numbers. Drive preparation and host are known only if the imported files record "
        "them.",
        _imported,
    ),
    limits.PARTIAL: _Limit(
        "partial", "Incomplete replays",
        "Some requests of these replays were not issued, did not complete, or failed. The numbers cover only the part "
        "that the drive served, which is a different workload.",
        _partial,
    ),
    limits.NOT_STEADY: _Limit(
        "not-steady", "Steady state not reached",
        "These drives were still changing when the measurement ended. The numbers are averages of its last part; a "
        "longer measurement would give different numbers.",
        _not_steady,
    ),
    limits.NOT_REPEATABLE: _Limit(
        "not-repeatable", "Repeats do not agree",
        "These values have too few runs, or runs with a relative standard error above the limit. Discard them or find "
        "the cause.",
        _not_repeatable,
    ),
    limits.BUSY: _Limit(
        "busy", "Measured on a busy machine",
        "Other programs or virtual machines used the host during these cells. The results may be too slow. Intervals "
        "of deltas include the most that this may have changed, so a verdict holds. For a narrower one, repeat the "
        "measurement on an idle host.",
        disturbances.busy,
    ),
    limits.TAINTED: _Limit(
        "tainted", "Tainted cells",
        "During these cells the drive was too hot, its array was in another state than asked for, or something else "
        "wrote to it. The results may be too slow.",
        disturbances.tainted,
    ),
    limits.HOST_LIMITED: _Limit(
        "host-limited", "Limited by the host",
        "In these tests the host, not the drive, may be the limit: the drive is at least as fast as the numbers say. "
        "Compare drives at lower loads or on a faster host.",
        disturbances.host_limited,
    ),
    limits.FEW_RECORDINGS: _Limit(
        "few-recordings", "Too few recordings for a verdict",
        "The differences in these tests are those of the recordings. A new recording of the same drive differs too; "
        "fewer than 3 a side do not show by how much. Set runs: 3; the recordings so far are kept.",
        _few_recordings,
    ),
    limits.LOSSY: _Limit(
        "lossy", "Lossy trace",
        "The tracer lost requests, so the replay puts less load on the drives than the application did.",
        _lossy,
    ),
    limits.SIMULATED: _Limit(
        "simulated", "No application ran",
        "On the virtual clock, a replay of an application's trace replaces the application. The durations are those of "
        "the replay, and never shorter than the trace.",
        _simulated,
    ),
    limits.NOT_PURGED: _Limit(
        "not-purged", "Not purged",
        "Nothing purged the drives before these tests. The numbers also depend on what was written to them before.",
        _not_purged,
    ),
    limits.VIRTUAL_CLOCK: _Limit(
        "virtual-clock", "Virtual clock",
        "Nothing was measured in real time, and fio did not run. The drive model computed the times; this host does "
        "not affect them.",
        _clock,
    ),
    limits.VIRTUAL: _Limit(
        "virtual", "Virtual drives",
        "The drives are software models. The numbers show how the models behave, not how any product "
        "behaves.",
        _virtual,
    ),
    limits.REDUCED: _Limit(
        "reduced", "Reduced protocols",
        "These protocols were shortened or altered. Do not compare the numbers with results of the full tests.",
        _reduced,
    ),
}  # fmt: skip
"""Limits by label."""
