"""Everything that limits what the numbers say, each in one sentence with its reason. The list is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drivelab.analysis.verdict import NOT_STEADY, RSE_TOO_HIGH, TOO_FEW_RUNS
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.numbers import is_missing, metric_name
from drivelab.report.outcome import rests_on_one_recording
from drivelab.report.taint import taint_reasons
from drivelab.report.view import Banner, Link

_MAY_BE_TAINTED = ("cells", "replays", "application_runs")


def banners(inputs: Inputs) -> tuple[Banner, ...]:
    """The banners that apply, gravest first."""
    makers: tuple[Callable[[Inputs], Banner | None], ...] = (
        _excluded, _also_differs, _imported, _partial, _not_steady, _not_repeatable, _tainted, _one_recording, _lossy,
        _simulated, _clock, _virtual, _reduced,
    )  # fmt: skip
    return tuple(banner for maker in makers if (banner := maker(inputs)) is not None)


def labels_of(anchor: str, limits: tuple[Banner, ...]) -> tuple[str, ...]:
    """Labels of the banners that concern the page at `anchor`."""
    return tuple(one.label for one in limits if any(link.anchor == anchor for link in one.affected))


def _links(inputs: Inputs, keys: list[Key]) -> tuple[Link, ...]:
    return tuple(Link(" · ".join(key), inputs.anchors[key]) for key in keys)


def _keys(inputs: Inputs, rows: Sequence[Row]) -> list[Key]:
    found = {(row["drive"], row["measurement"]) for row in rows}
    return [key for key in inputs.keys if key in found]


def _not_steady(inputs: Inputs) -> Banner | None:
    missed = [row for row in inputs.tables["steady_state"] if not row["reached"]]
    by_verdict = [row for row in inputs.tables["summary"] if row["verdict"] == NOT_STEADY]
    keys = _keys(inputs, [*missed, *by_verdict])
    if not keys:
        return None
    reasons = [_unsteady_loop([row for row in missed if row["recording"] == one], one)
               for one in dict.fromkeys(row["recording"] for row in missed)]  # fmt: skip
    for key in _keys(inputs, by_verdict):
        labels = dict.fromkeys(row["cell_label"] for row in by_verdict if (row["drive"], row["measurement"]) == key)
        if key not in _keys(inputs, missed):
            reasons.append(f"{key[0]} · {key[1]}: {', '.join(labels)} still changed at its end")
    return Banner(
        id="not-steady",
        label="not steady",
        title="Steady state not reached",
        meaning="These drives were still changing when the measurement ended: the numbers are averages of its last "
        "part and would come out differently after more of it.",
        affected=_links(inputs, keys),
        reasons=tuple(reasons),
    )


def _excluded(inputs: Inputs) -> Banner | None:
    rows = inputs.tables["exclusions"]
    if not rows:
        return None
    places = dict.fromkeys(f"{row['recording']}, {row['place']}: {row['words']}" for row in rows)
    return Banner(
        id="excluded",
        label="data left out",
        title="Left out of every result",
        meaning="These data cannot be relied on and are in no average, window, percentile or comparison.",
        affected=_links(inputs, _keys(inputs, rows)),
        reasons=tuple(places),
    )


def _also_differs(inputs: Inputs) -> Banner | None:
    rows = [row for row in inputs.tables["differences"] if not row["intended"]]
    if not rows:
        return None
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        found.setdefault((row["comparison"], row["basis"]), {})[str(row["facet"])] = None
    compared = [{"drive": row["comparison"], "measurement": row["measurement"]} for row in rows]
    return Banner(
        id="also-differs",
        label="not all else equal",
        title="More differs than was meant to",
        meaning="Something else differs between the compared drives, which could explain a delta as well.",
        affected=_links(inputs, _keys(inputs, compared)),
        reasons=tuple(f"{one} against {basis}: {', '.join(facets)}" for (one, basis), facets in found.items()),
    )


def _imported(inputs: Inputs) -> Banner | None:
    rows = [row for row in inputs.tables["summary"] if str(row["protocol"]).startswith("imported")]
    if not rows:
        return None
    return Banner(
        id="imported",
        label="imported",
        title="Imported: conditions not recorded",
        meaning="These numbers were measured by others: how the drive was prepared, and on what host, is known only as "
        "far as their files say it.",
        affected=_links(inputs, _keys(inputs, rows)),
        reasons=tuple(dict.fromkeys(f"{row['drive']} · {row['measurement']}: {row['protocol']}" for row in rows)),
    )


def _partial(inputs: Inputs) -> Banner | None:
    rows = [row for row in inputs.tables["replays"] if row["partial"] or row["errors"]]
    if not rows:
        return None
    return Banner(
        id="partial",
        label="partial replay",
        title="Replays that did not go through",
        meaning="Requests of these replays were not issued, did not come back, or failed: the numbers are of the part "
        "that the drive served, which is another workload.",
        affected=_links(inputs, _keys(inputs, rows)),
        reasons=tuple(
            f"{row['drive']} · {row['measurement']}: {row['trace']}, run {row['repeat']}: {'; '.join(row['marks'])}"
            for row in rows
        ),
    )


def _simulated(inputs: Inputs) -> Banner | None:
    rows = [row for row in inputs.tables["application_runs"] if not is_missing(row["simulated_from"])]
    if not rows:
        return None
    traces = dict.fromkeys((row["application"], row["simulated_from"]) for row in rows)
    return Banner(
        id="simulated",
        label="simulated application",
        title="No application ran",
        meaning="On the virtual clock a replay of an application's trace stands in for the application: the durations "
        "are the replay's, and never shorter than the trace.",
        affected=_links(inputs, _keys(inputs, rows)),
        reasons=tuple(f"{application} is the trace '{trace}'" for application, trace in traces),
    )


def _unsteady_loop(windows: list[Row], recording: str) -> str:
    outside = [f"{row['variable']} ({metric_name(row['metric'])})" for row in windows if not within(row)]
    which = f"; outside the limits in the last window: {', '.join(outside)}" if outside else ""
    return f"{recording}: not steady after {windows[0]['rounds']} rounds{which}"


def within(window: Row) -> bool:
    """Whether a variable kept both limits in the window, whatever the other variables did."""
    return bool(
        window["measured_data_excursion"] <= window["allowed_data_excursion"]
        and window["measured_slope_excursion"] <= window["allowed_slope_excursion"]
    )


def _not_repeatable(inputs: Inputs) -> Banner | None:
    rows = [row for row in inputs.tables["summary"] if row["verdict"] in {RSE_TOO_HIGH, TOO_FEW_RUNS}]
    if not rows:
        return None
    return Banner(
        id="not-repeatable",
        label="not repeatable",
        title="Repeats do not agree",
        meaning="These values stand on too few runs, or on runs whose relative standard error is above its limit: "
        "discard them or study the cause.",
        affected=_links(inputs, _keys(inputs, rows)),
        reasons=tuple(
            f"{row['drive']} · {row['measurement']}: {row['cell_label']}, {metric_name(row['metric'])}: "
            f"{row['verdict']}"
            for row in rows
        ),
    )


def _tainted(inputs: Inputs) -> Banner | None:
    frames = [inputs.frame(name) for name in _MAY_BE_TAINTED]
    rows = [row for frame in frames if "tainted" in frame for row in rows_of(frame[frame["tainted"].eq(True)])]
    if not rows:
        return None
    keys = _keys(inputs, rows)
    reasons = []
    for key in keys:
        of_key = [row for row in rows if (row["drive"], row["measurement"]) == key]
        whole = sum(len(inputs.frame_of(name, key)) for name in _MAY_BE_TAINTED)
        reasons.append(f"{key[0]} · {key[1]}: {len(of_key)} of {whole} cells and replays: {taint_reasons(of_key)}")
    return Banner(
        id="tainted",
        label="tainted",
        title="Tainted cells",
        meaning="While these cells were measured the drive was too hot, or others used the host: they may be too slow.",
        affected=_links(inputs, keys),
        reasons=tuple(reasons),
    )


def _one_recording(inputs: Inputs) -> Banner | None:
    rows = [row for row in inputs.tables["deltas"] if rests_on_one_recording(row)]
    if not rows:
        return None
    sides = [{"drive": row[one], "measurement": row["measurement"]} for row in rows for one in ("basis", "comparison")]
    tests: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        tests.setdefault((row["comparison"], row["basis"]), {})[str(row["measurement"])] = None
    return Banner(
        id="one-recording",
        label="one recording per drive",
        title="One recording per drive",
        meaning="Verdicts on these tests rest on the scatter within one recording of a drive, and do not say how the "
        "next recording would come out: for that, measure anew several times (runs: 3).",
        affected=_links(inputs, _keys(inputs, sides)),
        reasons=tuple(f"{one} against {basis}: {', '.join(names)}" for (one, basis), names in tests.items()),
    )


def _lossy(inputs: Inputs) -> Banner | None:
    traces = [row for row in inputs.tables["traces"] if row.get("lossy") is True]
    if not traces:
        return None
    names = {row["trace"] for row in traces}
    return Banner(
        id="lossy",
        label="lossy trace",
        title="Lossy trace",
        meaning="The tracer lost requests: the replay asks less of the drives than the application did.",
        affected=_links(inputs, _keys(inputs, [r for r in inputs.tables["replays"] if r["trace"] in names])),
        reasons=tuple(
            f"{row['trace']}: "
            + ("number lost not recorded" if is_missing(row.get("lost")) else f"{int(row['lost']):,} lost")
            for row in traces
        ),
    )


def _clock(inputs: Inputs) -> Banner | None:
    keys = [key for key in inputs.keys if inputs.on_virtual_clock(key)]
    if not keys:
        return None
    reasons = [plan["clock_reason"] for plan in inputs.plans if not is_missing(plan.get("clock_reason"))]
    return Banner(
        id="virtual-clock",
        label="virtual clock",
        title="Virtual clock",
        meaning="Nothing was measured in real time and fio did not run: the model of the drive computed the times, "
        "so they leave out this host altogether.",
        affected=_links(inputs, keys),
        reasons=tuple(f"Why: {reason}" for reason in dict.fromkeys(reasons)),
    )


def _virtual(inputs: Inputs) -> Banner | None:
    keys = [key for key in inputs.keys if inputs.flag(key, "virtual")]
    if not keys:
        return None
    return Banner(
        id="virtual",
        label="virtual drive",
        title="Virtual drives",
        meaning="The drives are software models of a flash drive: the numbers show how the models behave and "
        "say nothing about any product.",
        affected=_links(inputs, keys),
    )


def _reduced(inputs: Inputs) -> Banner | None:
    keys = [key for key in inputs.keys if inputs.flag(key, "reduced")]
    if not keys:
        return None
    return Banner(
        id="reduced",
        label="reduced",
        title="Reduced protocols",
        meaning="These protocols were shortened or altered: the numbers are no results of the full tests and "
        "must not be compared with any.",
        affected=_links(inputs, keys),
        reasons=tuple(
            dict.fromkeys(
                f"{plan['measurement']}: {why}" for plan in inputs.plans for why in plan.get("reduced_why") or ()
            )
        ),
    )
