"""The verdict on many drives in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from drivelab.analysis.detectors.outliers import FALSE_ALARM, LEAST_VALUES, MODIFIED_Z
from drivelab.analysis.fleet_statistics import apart
from drivelab.criteria.repeats import FEWEST
from drivelab.report.numbers import names, number, percent, quantity, unit_of

_NAMED = 8
"""Most names in a sentence; it counts the others."""
_ALPHA = 0.05


def lead(
    drives: pd.DataFrame, spread: pd.DataFrame, deviations: pd.DataFrame, hosts: pd.DataFrame, deltas: pd.DataFrame,
    models: pd.DataFrame, basis: str, margin_pct: float,
) -> Iterator[str]:  # fmt: skip
    """Yield the verdict in sentences: measured drives, models, spread, outliers, hosts, basis.

    `deviations` needs the columns OF_DEVIATIONS.
    """
    failed = drives[drives["state"] != "measured"]
    steady = int(((drives["not_steady"] == 0) & (drives["state"] == "measured")).sum())
    yield (
        f"{number(len(drives) - len(failed))} of {number(len(drives))} drives were measured; {number(steady)} of them "
        "are steady in every test." + (f" Not measured: {some(failed['drive'])}." if len(failed) else "")
    )
    for (base, model), rows in models.groupby(["basis", "comparison"], sort=False):
        counts = rows["comparison_n"].max(), rows["basis_n"].max()
        needed = f" (a verdict needs {FEWEST})" if min(counts) < FEWEST else ""
        yield f"As models: {model} against {base}, {counts[0]} against {counts[1]} specimens{needed}, {_counts(rows)}."
    yield from _ranges(spread)
    outlying = drives[drives["outlying"] > 0].sort_values("outlying", ascending=False, kind="stable")
    outliers = [f"{row['drive']} in {row['outlying']} of {count(row['values'], 'value')}"
                for _, row in outlying.iterrows()]  # fmt: skip
    if outliers:
        heading = "1 drive is an outlier" if len(outliers) == 1 else f"{len(outliers)} drives are outliers"
        yield f"{heading}: {some(outliers)}."
    elif len(spread) and spread["drives"].max() >= LEAST_VALUES:
        yield (
            f"No drive is an outlier. An outlier has a modified z above {MODIFIED_Z:g}, a chance below "
            f"{100 * FALSE_ALARM:g}\u00a0% among normal values of {count(spread['drives'].max(), 'drive')}, and is "
            f"more than {margin_pct:g}\u00a0% from the median. This rule cannot detect a group of similar outliers."
        )
    elif len(spread):
        yield f"No drive is called an outlier: the rule needs values of at least {LEAST_VALUES} drives."
    for measurement, rows in apart(deviations, margin_pct).groupby("measurement", sort=False):
        far = "1 drive is" if len(rows) == 1 else f"{number(len(rows))} drives are"
        ends = [percent(end, signed=True) for end in (rows["deviation_pct"].min(), rows["deviation_pct"].max())]
        yield (
            f"In {measurement}, {far} far from the median but not outliers by the rule: {some(rows['drive'])}, "
            f"by {' to '.join(dict.fromkeys(ends))}."
        )
    if len(hosts):
        different = hosts[hosts["p_adjusted"] <= _ALPHA]
        differences = [f"{row['host']} by {percent(row['difference_pct'], signed=True)} in {row['measurement']}"
                       for _, row in different.iterrows()]  # fmt: skip
        yield (
            f"The drives of some hosts differ from those of the others: {some(differences)}."
            if differences
            else "The drives of each host do not differ from those of the other hosts."
        )
    if len(deltas):
        yield f"Compared with {basis}, {_counts(deltas)}."
    elif len(drives) > 1:
        yield f"No values are compared with the basis, {basis}: it was not measured, or no other drive was."


def _ranges(spread: pd.DataFrame) -> Iterator[str]:
    """Yield the narrowest and widest range of key values: robust variation alone misses groups of drives."""
    keys = spread[spread["is_key"] & (spread["drives"] > 1)]
    keys = keys.assign(range_pct=100 * (keys["max"] / keys["min"] - 1)).sort_values("range_pct", kind="stable")
    if keys.empty:
        return
    ranges = [
        f"{percent(row['range_pct'])} in {row['measurement']} ({number(row['min'])} to "
        f"{quantity(row['max'], unit_of(row['metric'], row['unit']))} over {number(row['drives'])} drives, robust "
        f"variation {percent(row['robust_cv_pct'])})"
        for _, row in keys.iloc[[0, -1]].iterrows()
    ]
    yield f"From the lowest drive to the highest, key values differ by {' to '.join(dict.fromkeys(ranges))}."


def count(number_of: int, thing: str) -> str:
    return f"{number(number_of)} {thing}{'' if number_of == 1 else 's'}"


def _counts(deltas: pd.DataFrame) -> str:
    """Count values by verdict: `12 values: 8 same within the margin, 4 cannot tell`."""
    counts = ", ".join(f"{number(count)} {verdict}" for verdict, count in deltas["verdict"].value_counts().items())
    return f"{count(len(deltas), 'value')}: {counts}"


def some(items: Iterable[object]) -> str:
    texts = list(map(str, items))
    return names(texts) if len(texts) <= _NAMED else f"{', '.join(texts[:_NAMED])} and {len(texts) - _NAMED} more"
