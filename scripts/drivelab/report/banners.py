"""The closed list of limitations of the numbers, each with its meaning and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from drivelab.analysis import limits
from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.verdict import NOT_STEADY, RSE_TOO_HIGH, TOO_FEW_RUNS
from drivelab.core.grouping import grouped
from drivelab.core.units import some
from drivelab.criteria.taint import is_busy
from drivelab.report.delta import in_few_recordings
from drivelab.report.document import Banner
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import host_limit_of, host_mark, taint_reasons
from drivelab.report.numbers import is_missing, metric_name

Found = Iterator[tuple[Key, str]]
"""Affected tests with a reason each; an empty reason, or the test NOWHERE, stands for none."""
_Find = Callable[[Inputs], Found]
NOWHERE = ("", "")
_NAMED = 3
"""Cells that a reason names."""
_MAY_BE_TAINTED = ("cells", "replays", "application_runs")


def banners(inputs: Inputs) -> tuple[Banner, ...]:
    """Return the banners that apply, most severe first."""
    applying = []
    for label in filter(_LIMITS.get, limits.LABELS):
        id_, title, meaning, find = _LIMITS[label]
        found = list(find(inputs))
        affected, reasons = {key for key, _ in found}, dict.fromkeys(reason for _, reason in found if reason)
        links = {inputs.anchors[key]: " · ".join(key) for key in inputs.keys if key in affected}
        if links or reasons:
            applying.append(Banner(id_, label, title, meaning, links, tuple(reasons)))
    return tuple(applying)


def within(window: Row) -> bool:
    """Return whether a tracked variable kept both limits in the window, regardless of the others."""
    return bool(
        window["measured_data_excursion"] <= window["allowed_data_excursion"]
        and window["measured_slope_excursion"] <= window["allowed_slope_excursion"]
    )


def _test(row: Row) -> str:
    return f"{row['drive']} · {row['measurement']}"


def _key(row: Row, drive: str = "drive") -> Key:
    return row[drive], row["measurement"]


def _each(table: str, reason: Callable[[Row], str], holds: Callable[[Row], object] = lambda _: True) -> _Find:
    """Return what finds the rows of a table that `holds` is true of."""
    return lambda inputs: ((_key(row), reason(row)) for row in inputs.tables[table] if holds(row))


def _also_differs(inputs: Inputs) -> Found:
    rows = [row for row in inputs.tables["differences"] if not row["intended"] and not _unknown(row)]
    return _of_pairs(rows, lambda pair: ", ".join(dict.fromkeys(row["facet"] for row in pair)))


def _not_recorded(inputs: Inputs) -> Found:
    rows = list(filter(_unknown, inputs.tables["differences"]))
    if not all(row["intended"] for row in rows):
        yield from _of_pairs(rows, lambda pair: not_recorded_words(len({row["facet"] for row in pair})))


def _unknown(row: Row) -> bool:
    return unknown(row["basis_value"], row["comparison_value"])


def _of_pairs(rows: list[Row], words: Callable[[list[Row]], str], *also: str) -> Found:
    """Yield the tests of the compared drives and of the sides `also`, and a reason for each compared pair."""
    yield from ((_key(row, side), "") for row in rows for side in (*also, "comparison"))
    for (drive, basis), pair in grouped(rows, lambda row: (row["comparison"], row["basis"])).items():
        yield NOWHERE, f"{drive} against {basis}: {words(pair)}"


def _not_steady(inputs: Inputs) -> Found:
    missed = [row for row in inputs.tables["steady_state"] if not row["reached"]]
    for recording, windows in grouped(missed, lambda row: row["recording"]).items():
        outside = [f"{row['variable']} ({metric_name(row['metric'])})" for row in windows if not within(row)]
        which = f"; outside the limits in the last window: {', '.join(outside)}" if outside else ""
        yield _key(windows[0]), f"{recording}: not steady after {windows[0]['rounds']} rounds{which}"
    soaks = grouped((row for row in inputs.tables["summary"] if row["verdict"] == NOT_STEADY), _key)
    for key in (key for key in inputs.keys if key in soaks and key not in set(map(_key, missed))):
        labels = dict.fromkeys(row["cell_label"] for row in soaks[key])
        yield key, f"{' · '.join(key)}: {', '.join(labels)} still changed at the end"


def _disturbed(inputs: Inputs, busy: bool) -> Found:
    """Find what other programs or virtual machines disturbed (`busy`), or anything else."""
    frames = [inputs.frame(name) for name in _MAY_BE_TAINTED]
    tainted = [row for frame in frames if "tainted" in frame for row in rows_of(frame[frame["tainted"].eq(True)])]
    by_key = grouped((row for row in tainted if is_busy(row.get("taint_reason")) == busy), _key)
    for key in (key for key in inputs.keys if key in by_key):
        total = sum(len(inputs.frame_of(name, key)) for name in _MAY_BE_TAINTED)
        reasons = taint_reasons(by_key[key])
        yield key, f"{' · '.join(key)}: {len(by_key[key])} of {total} cells and replays: {reasons}"


def _host_limited(inputs: Inputs) -> Found:
    by_key = grouped(filter(host_mark, inputs.tables["summary"]), _key)
    for key in (key for key in inputs.keys if key in by_key):
        labels = list(dict.fromkeys(str(row["cell_label"]) for row in by_key[key]))
        yield key, f"{' · '.join(key)}: {some(labels, _NAMED)}: {host_limit_of(by_key[key])}"


def _few_recordings(inputs: Inputs) -> Found:
    rows = list(filter(in_few_recordings, inputs.tables["deltas"]))
    return _of_pairs(rows, lambda pair: ", ".join(dict.fromkeys(row["measurement"] for row in pair)), "basis")


def _lossy(inputs: Inputs) -> Found:
    lossy: dict[str, Any] = {row["trace"]: row["lost"] for row in inputs.tables["traces"] if row["lossy"] is True}
    yield from ((_key(row), "") for row in inputs.tables["replays"] if row["trace"] in lossy)
    for trace, lost in lossy.items():
        yield NOWHERE, f"{trace}: " + ("number lost not recorded" if is_missing(lost) else f"{int(lost):,} lost")


def _clock(inputs: Inputs) -> Found:
    yield from _where(inputs, lambda row: row.get("clock") == "virtual")
    reasons = (plan.get("clock_reason") for plan in inputs.plans)
    yield from ((NOWHERE, f"Reason: {reason}") for reason in reasons if not is_missing(reason))


def _where(inputs: Inputs, holds: Callable[[Row], bool]) -> Found:
    """Find the tests with a plan or value that `holds`."""
    rows = {key: (*inputs.plans_of(key), *inputs.of_key("summary", key)) for key in inputs.keys}
    return ((key, "") for key, of_test in rows.items() if any(map(holds, of_test)))


def _reduced(inputs: Inputs) -> Found:
    yield from _where(inputs, lambda row: bool(row.get("reduced")))
    for plan in inputs.plans:
        yield from ((NOWHERE, f"{plan['measurement']}: {why}") for why in plan.get("reduced_why") or ())


_LIMITS: Mapping[str, tuple[str, str, str, _Find]] = {
    limits.EXCLUDED: (
        "excluded", "Excluded from every result",
        "These data are unreliable. No average, window, percentile or comparison contains them.",
        _each("exclusions", lambda row: f"{row['recording']}, {row['place']}: {row['words']}"),
    ),
    limits.ALSO_DIFFERS: (
        "also-differs", "Unintended differences",
        "The compared drives also differ in something that the study did not intend. It may explain a delta.",
        _also_differs,
    ),
    limits.NOT_RECORDED: (
        "not-recorded", "Conditions not recorded",
        "Nobody knows whether these conditions are equal for the compared drives. They may explain a delta. The "
        "comparison lists them.",
        _not_recorded,
    ),
    limits.IMPORTED: (
        "imported", "Imported: conditions not recorded",
        "Someone else measured these numbers. Drive preparation and host are known only if the imported files record "
        "them.",
        _each("summary", lambda row: f"{_test(row)}: {row['protocol']}",
              lambda row: limits.is_imported(row["recordings"])),
    ),
    limits.PARTIAL: (
        "partial", "Incomplete replays",
        "Some requests of these replays were not issued, did not complete, or failed. The numbers cover only the part "
        "that the drive served, which is a different workload.",
        _each("replays", lambda row: f"{_test(row)}: {row['trace']}, run {row['repeat']}: {'; '.join(row['marks'])}",
              lambda row: row["partial"] or row["errors"]),
    ),
    limits.NOT_STEADY: (
        "not-steady", "Steady state not reached",
        "These drives were still changing when the measurement ended. The numbers are averages of its last part; a "
        "longer measurement would give different numbers.",
        _not_steady,
    ),
    limits.NOT_REPEATABLE: (
        "not-repeatable", "Repeats do not agree",
        "These values have too few runs, or runs with a relative standard error above the limit. Discard them or find "
        "the cause.",
        _each("summary",
              lambda row: f"{_test(row)}: {row['cell_label']}, {metric_name(row['metric'])}: {row['verdict']}",
              lambda row: row["verdict"] in {RSE_TOO_HIGH, TOO_FEW_RUNS}),
    ),
    limits.BUSY: (
        "busy", "Measured on a busy machine",
        "Other programs or virtual machines used the host during these cells. The results may be too slow. Intervals "
        "of deltas include the most that this may have changed, so a verdict holds. For a narrower one, repeat the "
        "measurement on an idle host.",
        partial(_disturbed, busy=True),
    ),
    limits.TAINTED: (
        "tainted", "Tainted cells",
        "During these cells the drive was too hot, its array was in another state than asked for, or something else "
        "wrote to it. The results may be too slow.",
        partial(_disturbed, busy=False),
    ),
    limits.HOST_LIMITED: (
        "host-limited", "Limited by the host",
        "In these tests the host, not the drive, may be the limit: the drive is at least as fast as the numbers say. "
        "Compare drives at lower loads or on a faster host.",
        _host_limited,
    ),
    limits.FEW_RECORDINGS: (
        "few-recordings", "Too few recordings for a verdict",
        "The differences in these tests are those of the recordings. A new recording of the same drive differs too; "
        "fewer than 3 a side do not show by how much. Set runs: 3; the recordings so far are kept.",
        _few_recordings,
    ),
    limits.LOSSY: (
        "lossy", "Lossy trace",
        "The tracer lost requests, so the replay puts less load on the drives than the application did.",
        _lossy,
    ),
    limits.SIMULATED: (
        "simulated", "No application ran",
        "On the virtual clock, a replay of an application's trace replaces the application. The durations are those of "
        "the replay, and never shorter than the trace.",
        _each("application_runs",
              lambda row: f"{row['application']}: replay of the trace '{row['simulated_from']}'",
              lambda row: not is_missing(row["simulated_from"])),
    ),
    limits.NOT_PURGED: (
        "not-purged", "Not purged",
        "Nothing purged the drives before these tests. The numbers also depend on what was written to them before.",
        lambda inputs: ((key, "") for key in limits.not_purged(inputs.frame("conditions"))),
    ),
    limits.VIRTUAL_CLOCK: (
        "virtual-clock", "Virtual clock",
        "Nothing was measured in real time, and fio did not run. The drive model computed the times; this host does "
        "not affect them.",
        _clock,
    ),
    limits.VIRTUAL: (
        "virtual", "Virtual drives",
        "The drives are software models. The numbers show how the models behave, not how any product "
        "behaves.",
        partial(_where, holds=lambda row: bool(row.get("virtual"))),
    ),
    limits.REDUCED: (
        "reduced", "Reduced protocols",
        "These protocols were shortened or altered. Do not compare the numbers with results of the full tests.",
        _reduced,
    ),
}  # fmt: skip
"""Id, title and meaning of each limit, and what finds its tests, by label."""
