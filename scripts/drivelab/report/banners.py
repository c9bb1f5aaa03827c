"""Everything that limits what the numbers say, each in one sentence with its reason. The list is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from drivelab.analysis.verdict import NOT_STEADY, RSE_TOO_HIGH, TOO_FEW_RUNS
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.numbers import is_missing, metric_name
from drivelab.report.outcome import rests_on_one_recording
from drivelab.report.taint import taint_reasons
from drivelab.report.view import Banner, Link

_MAY_BE_TAINTED = ("cells", "replays", "application_runs")
_Found = tuple[Sequence[Key], Iterable[str]]
"""Tests that are concerned, and reasons; both empty where nothing limits the numbers."""


def banners(inputs: Inputs) -> tuple[Banner, ...]:
    """The banners that apply, gravest first."""
    return tuple(banner for limit in _LIMITS if (banner := limit.banner(inputs)) is not None)


def labels_of(anchor: str, limits: tuple[Banner, ...]) -> tuple[str, ...]:
    """Labels of the banners that concern the page at `anchor`."""
    return tuple(one.label for one in limits if any(link.anchor == anchor for link in one.affected))


def within(window: Row) -> bool:
    """Whether a variable kept both limits in the window, whatever the other variables did."""
    return bool(
        window["measured_data_excursion"] <= window["allowed_data_excursion"]
        and window["measured_slope_excursion"] <= window["allowed_slope_excursion"]
    )


@dataclass(frozen=True)
class _Limit:
    id: str
    label: str
    title: str
    meaning: str
    find: Callable[[Inputs], _Found]

    def banner(self, inputs: Inputs) -> Banner | None:
        keys, reasons = self.find(inputs)
        links = tuple(Link(" · ".join(key), inputs.anchors[key]) for key in keys)
        said = tuple(dict.fromkeys(reasons))
        return Banner(self.id, self.label, self.title, self.meaning, links, said) if links or said else None


def _keys(inputs: Inputs, rows: Iterable[Row]) -> list[Key]:
    found = {(row["drive"], row["measurement"]) for row in rows}
    return [key for key in inputs.keys if key in found]


def _test(row: Row) -> str:
    return f"{row['drive']} · {row['measurement']}"


def _excluded(inputs: Inputs) -> _Found:
    rows = inputs.tables["exclusions"]
    return _keys(inputs, rows), (f"{row['recording']}, {row['place']}: {row['words']}" for row in rows)


def _also_differs(inputs: Inputs) -> _Found:
    rows = [row for row in inputs.tables["differences"] if not row["intended"]]
    compared = ({"drive": row["comparison"], "measurement": row["measurement"]} for row in rows)
    return _keys(inputs, compared), _of_pairs(rows, "facet")


def _of_pairs(rows: Iterable[Row], name: str) -> Iterator[str]:
    """For each pair that is compared, all that a column says of it."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        found.setdefault((row["comparison"], row["basis"]), {})[str(row[name])] = None
    return (f"{one} against {basis}: {', '.join(said)}" for (one, basis), said in found.items())


def _imported(inputs: Inputs) -> _Found:
    rows = [row for row in inputs.tables["summary"] if str(row["protocol"]).startswith("imported")]
    return _keys(inputs, rows), (f"{_test(row)}: {row['protocol']}" for row in rows)


def _partial(inputs: Inputs) -> _Found:
    rows = [row for row in inputs.tables["replays"] if row["partial"] or row["errors"]]
    return _keys(inputs, rows), (
        f"{_test(row)}: {row['trace']}, run {row['repeat']}: {'; '.join(row['marks'])}" for row in rows
    )


def _not_steady(inputs: Inputs) -> _Found:
    missed = [row for row in inputs.tables["steady_state"] if not row["reached"]]
    by_verdict = [row for row in inputs.tables["summary"] if row["verdict"] == NOT_STEADY]
    reasons = [_unsteady_loop([row for row in missed if row["recording"] == one], one)
               for one in dict.fromkeys(row["recording"] for row in missed)]  # fmt: skip
    told = _keys(inputs, missed)
    for key in _keys(inputs, by_verdict):
        labels = dict.fromkeys(row["cell_label"] for row in by_verdict if (row["drive"], row["measurement"]) == key)
        if key not in told:
            reasons.append(f"{key[0]} · {key[1]}: {', '.join(labels)} still changed at its end")
    return _keys(inputs, [*missed, *by_verdict]), reasons


def _unsteady_loop(windows: list[Row], recording: str) -> str:
    outside = [f"{row['variable']} ({metric_name(row['metric'])})" for row in windows if not within(row)]
    which = f"; outside the limits in the last window: {', '.join(outside)}" if outside else ""
    return f"{recording}: not steady after {windows[0]['rounds']} rounds{which}"


def _not_repeatable(inputs: Inputs) -> _Found:
    rows = [row for row in inputs.tables["summary"] if row["verdict"] in {RSE_TOO_HIGH, TOO_FEW_RUNS}]
    return _keys(inputs, rows), (
        f"{_test(row)}: {row['cell_label']}, {metric_name(row['metric'])}: {row['verdict']}" for row in rows
    )


def _tainted(inputs: Inputs) -> _Found:
    frames = [inputs.frame(name) for name in _MAY_BE_TAINTED]
    rows = [row for frame in frames if "tainted" in frame for row in rows_of(frame[frame["tainted"].eq(True)])]
    keys, reasons = _keys(inputs, rows), []
    for key in keys:
        of_key = [row for row in rows if (row["drive"], row["measurement"]) == key]
        whole = sum(len(inputs.frame_of(name, key)) for name in _MAY_BE_TAINTED)
        reasons.append(f"{key[0]} · {key[1]}: {len(of_key)} of {whole} cells and replays: {taint_reasons(of_key)}")
    return keys, reasons


def _one_recording(inputs: Inputs) -> _Found:
    rows = [row for row in inputs.tables["deltas"] if rests_on_one_recording(row)]
    sides = ({"drive": row[one], "measurement": row["measurement"]} for row in rows for one in ("basis", "comparison"))
    return _keys(inputs, sides), _of_pairs(rows, "measurement")


def _lossy(inputs: Inputs) -> _Found:
    traces = [row for row in inputs.tables["traces"] if row.get("lossy") is True]
    names = {row["trace"] for row in traces}
    return _keys(inputs, (row for row in inputs.tables["replays"] if row["trace"] in names)), (
        f"{row['trace']}: "
        + ("number lost not recorded" if is_missing(row.get("lost")) else f"{int(row['lost']):,} lost")
        for row in traces
    )


def _simulated(inputs: Inputs) -> _Found:
    rows = [row for row in inputs.tables["application_runs"] if not is_missing(row["simulated_from"])]
    return _keys(inputs, rows), (f"{row['application']} is the trace '{row['simulated_from']}'" for row in rows)


def _clock(inputs: Inputs) -> _Found:
    reasons = (plan["clock_reason"] for plan in inputs.plans if not is_missing(plan.get("clock_reason")))
    return [key for key in inputs.keys if inputs.on_virtual_clock(key)], (f"Why: {reason}" for reason in reasons)


def _virtual(inputs: Inputs) -> _Found:
    return [key for key in inputs.keys if inputs.flag(key, "virtual")], ()


def _reduced(inputs: Inputs) -> _Found:
    reasons = (f"{plan['measurement']}: {why}" for plan in inputs.plans for why in plan.get("reduced_why") or ())
    return [key for key in inputs.keys if inputs.flag(key, "reduced")], reasons


_LIMITS = (
    _Limit(
        "excluded", "data left out", "Left out of every result",
        "These data cannot be relied on and are in no average, window, percentile or comparison.",
        _excluded,
    ),
    _Limit(
        "also-differs", "not all else equal", "More differs than was meant to",
        "Something else differs between the compared drives, which could explain a delta as well.",
        _also_differs,
    ),
    _Limit(
        "imported", "imported", "Imported: conditions not recorded",
        "These numbers were measured by others: how the drive was prepared, and on what host, is known only as far as "
        "their files say it.",
        _imported,
    ),
    _Limit(
        "partial", "partial replay", "Replays that did not go through",
        "Requests of these replays were not issued, did not come back, or failed: the numbers are of the part that the "
        "drive served, which is another workload.",
        _partial,
    ),
    _Limit(
        "not-steady", "not steady", "Steady state not reached",
        "These drives were still changing when the measurement ended: the numbers are averages of its last part and "
        "would come out differently after more of it.",
        _not_steady,
    ),
    _Limit(
        "not-repeatable", "not repeatable", "Repeats do not agree",
        "These values stand on too few runs, or on runs whose relative standard error is above its limit: discard them "
        "or study the cause.",
        _not_repeatable,
    ),
    _Limit(
        "tainted", "tainted", "Tainted cells",
        "While these cells were measured the drive was too hot, or others wrote to it or used the host: they may be "
        "too slow.",
        _tainted,
    ),
    _Limit(
        "one-recording", "one recording per drive", "One recording per drive",
        "Verdicts on these tests rest on the scatter within one recording of a drive, and do not say how the next "
        "recording would come out: for that, measure anew several times (runs: 3).",
        _one_recording,
    ),
    _Limit(
        "lossy", "lossy trace", "Lossy trace",
        "The tracer lost requests: the replay asks less of the drives than the application did.",
        _lossy,
    ),
    _Limit(
        "simulated", "simulated application", "No application ran",
        "On the virtual clock a replay of an application's trace stands in for the application: the durations are the "
        "replay's, and never shorter than the trace.",
        _simulated,
    ),
    _Limit(
        "virtual-clock", "virtual clock", "Virtual clock",
        "Nothing was measured in real time and fio did not run: the model of the drive computed the times, so they "
        "leave out this host altogether.",
        _clock,
    ),
    _Limit(
        "virtual", "virtual drive", "Virtual drives",
        "The drives are software models of a flash drive: the numbers show how the models behave and say nothing about "
        "any product.",
        _virtual,
    ),
    _Limit(
        "reduced", "reduced", "Reduced protocols",
        "These protocols were shortened or altered: the numbers are no results of the full tests and must not be "
        "compared with any.",
        _reduced,
    ),
)  # fmt: skip
"""Gravest first."""
