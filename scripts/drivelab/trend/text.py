"""A trend as lines of at most 80 characters, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.analysis.change_points import SIMULATED
from drivelab.analysis.verdict import BETTER, DECIDED, IN_RECORDINGS, WORSE
from drivelab.core.grouping import grouped
from drivelab.core.terminal import broken, strip
from drivelab.core.units import counted, format_percentage, scaled
from drivelab.explore.comparison_lines import FAIL_ON
from drivelab.explore.comparison_lines import interval as interval_words
from drivelab.report.numbers import capital, number, unit_of
from drivelab.report.sentences import value_words
from drivelab.trend.series import Group
from drivelab.trend.standing import LevelChange
from drivelab.trend.trend import Test, Trend

WIDTH = 80
_MOST_LEFT_OUT = 8
_MOST_DIFFERING = 6
_TURN = {outcome: turn for turn, outcome in enumerate((*WORSE, *BETTER))}


def headline(found: Trend) -> str:
    """Return a sentence with the number of tests of each outcome, and the largest difference."""
    counts = Counter(test.outcome for test in found.shown)
    outcomes = ", ".join(
        f"{counted(count, 'test')} {outcome}, without a verdict" if outcome == IN_RECORDINGS
        else f"{counted(count, 'test') if not place else count} {outcome}"
        for place, (outcome, count) in enumerate(sorted(counts.items(), key=lambda item: _TURN.get(item[0], 9)))
    )  # fmt: skip
    shifts = sum(len(test.changes) for test in found.shown)
    terms = found.terms
    decided = [test for test in found.shown if test.outcome in (*WORSE, *BETTER) and test.since_pct is not None]
    largest = max(decided, key=lambda test: abs(test.since_pct or 0.0), default=None)
    most = f"; largest: {test_words(largest)}: {since_words(largest)}" if largest else ""
    return (
        f"{found.model}, {span(found)}: {outcomes}{most}; {counted(shifts, 'change')} of level "
        f"(margin {terms.margin_pct:g} %, confidence {terms.confidence_pct:g} %)"
    )


def span(found: Trend) -> str:
    """Return how many points there are, and which is the baseline."""
    names = list(dict.fromkeys(point.name for group in found.groups for point in group.points))
    if found.terms.by == "date":
        names.sort()
    baselines = list(dict.fromkeys(found.baselines.values()))
    return f"{counted(len(names), found.terms.by)} against {' and '.join(baselines)}"


def test_words(test: Test) -> str:
    """Return the workload of a test in words, with the metric unless the unit says it."""
    return capital(value_words(test.key.cell_label, test.key.metric))


def since_words(test: Test) -> str:
    """Return the difference to the baseline with its interval, as `+5.1 % (+4.0 to +6.1 %)`."""
    if test.since_pct is None:
        return "no difference computed"
    return percent_words(test.since_pct, test.since_low_pct, test.since_high_pct)


def percent_words(change_pct: float, low_pct: float | None, high_pct: float | None) -> str:
    """Return a change with its interval."""
    words = f"{format_percentage(change_pct, signed=True)} %"
    return words if low_pct is None or high_pct is None else f"{words} ({interval_words(low_pct, high_pct)})"


def change_words(change: LevelChange) -> str:
    """Return a change of level as a phrase."""
    change_pct = percent_words(change.change_pct, change.low_pct, change.high_pct)
    return f"level changed between {change.before} and {change.point}: {change_pct}, {change.outcome}"


def method_words(found: Trend) -> list[str]:
    """Return how the differences and the changes were found."""
    alpha = 100 - found.terms.confidence_pct
    units = "drives" if any(group.several_drives for group in found.groups) else "recordings"
    pairs = f", {found.in_pairs} in pairs because both points have the same drives" * (units == "drives")
    lines = [
        f"Differences to the baseline: t tests of the {units}, three a side or more, adjusted for "
        f"{counted(found.compared, 'comparison')}{pairs}." if found.compared
        else f"No difference could be tested: a verdict needs three {units} at both points."
    ]  # fmt: skip
    if found.searched:
        lines.append(
            f"Changes of level: largest t of all places with three points on both sides, against {SIMULATED:,} "
            f"simulated series without a change, adjusted for {counted(found.searched, 'test')}. If "
            f"nothing changed, at most {alpha:g} % of trends show a change."
        )
    elif found.terms.by != "host":
        lines.append(f"No change of level was searched: that needs six {found.terms.by}s or recordings.")
    return lines


def differing_words(group: Group) -> Iterator[str]:
    """Yield each condition that differs between the recordings of a group, with its values."""
    for facet, values in list(group.differing.items())[:_MOST_DIFFERING]:
        shown = " / ".join(values[:3]) + (f" / and {len(values) - 3} more" if len(values) > 3 else "")
        yield f"{facet} ({shown})"
    if len(group.differing) > _MOST_DIFFERING:
        yield f"and {len(group.differing) - _MOST_DIFFERING} more, see --json"


def lines(found: Trend, *, every: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines for a terminal and their styles, none wider than WIDTH."""
    yield from _wrapped(headline(found), "bold")
    if found.labels:
        yield from _wrapped(f"Labels: {', '.join(found.labels)}", "yellow")
    for group in found.groups:
        yield "", ""
        points = group.points
        drives = ", ".join(dict.fromkeys(recording.drive for recording in group.recordings))
        yield from _wrapped(f"{group.protocol}: {points[0].name} to {points[-1].name}, {len(points)} "
                            f"{found.terms.by}s, {counted(len(group.recordings), 'recording')}, {drives}",
                            "bold")  # fmt: skip
        if differing := list(differing_words(group)):
            yield from _wrapped(f"Differs too: {', '.join(differing)}", "yellow")
        shown = [test for test in (found.tests if every else found.shown) if test.group == group.name]
        yield f"{'test':38}{'trend':13}{'baseline':>9}{'latest':>9} unit", "dim"
        for test in shown:
            yield from _of_test(test)
    yield "", ""
    for words in method_words(found):
        yield from _wrapped(words, "dim")
    reasons = grouped(found.left_out, lambda name: found.left_out[name])
    for why, names in list(reasons.items())[:_MOST_LEFT_OUT]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from _wrapped(f"Left out: {names[0]}{more}: {why}", "yellow")
    if len(reasons) > _MOST_LEFT_OUT:
        yield f"Left out for {len(reasons) - _MOST_LEFT_OUT} more reasons, see --json", "yellow"


def _of_test(test: Test) -> Iterator[tuple[str, str]]:
    baseline = next((point for point in test.points if point.point == test.baseline), test.points[0])
    latest = test.points[-1]
    (old, new), unit = scaled([baseline.value, latest.value], unit_of(test.key.metric, test.key.unit))
    name, *rest = textwrap.wrap(test_words(test), 37, break_long_words=False)
    course = strip([point.value for point in test.points], 12, from_zero=False)
    yield f"{name:38}{course:13}{number(old):>9}{number(new):>9} {unit}".rstrip(), ""
    for part in rest:
        yield part, ""
    colour = "red" if test.outcome in WORSE else "green" if test.outcome in BETTER else ""
    yield from _wrapped(f"{test.outcome}, {test.because}: {since_words(test)}", colour, "  ")
    for change in test.changes:
        yield from _wrapped(change_words(change), "", "  ")
    if test.outcome not in DECIDED:
        for doubt in dict.fromkeys(doubt for doubt in latest.doubts):
            yield from _wrapped(doubt, "dim", "  ")


def _wrapped(words: str, style: str, indent: str = "") -> Iterator[tuple[str, str]]:
    for line in broken(indent + words, WIDTH):
        yield line, style


def failing(found: Trend, wanted: Sequence[str]) -> dict[str, int]:
    """Return the number of tests with a refused outcome, for each of `wanted` (keys of FAIL_ON) that has any."""
    counts = {key: sum(test.outcome in FAIL_ON[key] for test in found.shown) for key in wanted}
    return {key: count for key, count in counts.items() if count}


def as_mapping(found: Trend) -> dict[str, Any]:
    """Return a trend for JSON, see workflow/schemas/output/trend.schema.yaml."""
    groups = {group.name: group for group in found.groups}
    return {
        "model": found.model,
        "by": found.terms.by,
        "margin_pct": found.terms.margin_pct,
        "confidence_pct": found.terms.confidence_pct,
        "labels": list(found.labels),
        "counts": dict(Counter(test.outcome for test in found.shown)),
        "compared": found.compared,
        "in_pairs": found.in_pairs,
        "searched": found.searched,
        "method": method_words(found),
        "groups": [
            {
                "group": group.name,
                "protocol": group.protocol,
                "baseline": found.baselines[group.name],
                "unit_of_replication": "drive" if group.several_drives else "recording",
                "conditions": dict(group.facets),
                "differing": {facet: list(values) for facet, values in group.differing.items()},
                "points": [
                    {"point": point.name, "drives": point.drives,
                     "recordings": [{"recording": each.name, "source": each.source, "started": each.started,
                                     "drive": each.drive, "firmware": each.firmware, "host": each.host}
                                    for each in point.recordings]}
                    for point in group.points
                ],
            }
            for group in found.groups
        ],
        "tests": [_test_mapping(test, groups[test.group]) for test in found.tests],
        "left_out": [{"name": name, "reason": why} for name, why in found.left_out.items()],
    }  # fmt: skip


def _test_mapping(test: Test, group: Group) -> Mapping[str, Any]:
    own = {name: value for name, value in test.__dict__.items() if name not in ("key", "points", "changes")}
    return {
        **own,
        "protocol": group.protocol,
        **test.key.__dict__,
        "words": test_words(test),
        "points": [point.__dict__ for point in test.points],
        "changes": [change.__dict__ for change in test.changes],
    }


def to_json(found: Trend) -> str:
    """Return a trend as JSON text."""
    return json.dumps(as_mapping(found), indent=1, ensure_ascii=False, allow_nan=False)
