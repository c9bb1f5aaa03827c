"""Response time against the rate of an open-loop load, and how much of the rate the drive delivers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values.load_values import LoadAnswer, load_answers
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import LATENCY, format_latency
from drivelab.figures.base.words import say, tell
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "load_curve", "Response time against offered rate",
        "Response time of the limited percentile against the rate at which requests arrive. Bars are 95 % intervals; "
        "a bar with an arrow has no upper end. The red line is the limit. The grey band is the answer: it reaches "
        "from the highest rate that passes to the lowest that fails. Hollow markers are rates that the data cannot "
        "decide. Below: the completed share of the offered rate.",
        tables=("load_rates",), when=("load", "drives_load"), place=340,
    ),
)  # fmt: skip

_FILLED = ("passes", "fails")
_OTHERS = {"p50_response_us": ("median", "--"), "p99_response_us": ("p99", ":")}
"""Further percentiles, shown for a single load."""
_MOST_NOTES = 4


@style.styled
def load_curve(load_rates: pd.DataFrame) -> Figure:
    """Draw a curve for each load of each recording, with its limit and its answer; response time logarithmic.

    Raises ValueError for unsuitable tables.
    """
    selection.require_one(load_rates, "measurement", "load_rates")
    answers = list(load_answers(load_rates))
    if not answers:
        raise ValueError("table 'load_rates' has no rate that counts")
    figure = style.new_figure("Response time against offered rate", height_in=5.4)
    for each in answers if len(answers) <= _MOST_NOTES else ():
        style.note(figure, f"{_name(each, answers)}: {each.sentence()}" if len(answers) > 1 else each.sentence())
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    drives = [str(each.rates["drive"].iloc[0]) for each in answers]
    looks, alone = overlay.looks(drives), len(set(drives)) == 1
    for place, (each, drive) in enumerate(zip(answers, drives, strict=True)):
        colour, name = style.colours(len(answers))[place] if alone else looks[drive].colour, _name(each, answers)
        _curve(upper, each, colour, name)
        share = 100 * each.rates["achieved_iops"] / each.rates["rate_iops"]
        lower.plot(each.rates["rate_iops"], share, color=colour, linewidth=1.4, marker="o", markersize=3.5, label=name,
                   gid="delivered")  # fmt: skip
    limited = f"p{answers[0].rates['percentile'].iloc[0]:g}"
    for column, (name, dash) in _OTHERS.items() if len(answers) == 1 else ():
        rates = answers[0].rates[answers[0].rates[column].notna()]
        if len(rates) and name != limited:
            upper.plot(rates["rate_iops"], rates[column], color=style.MUTED, linestyle=dash, linewidth=1.2, label=name,
                       gid=name)  # fmt: skip
    for limit_us in dict.fromkeys(float(each.rates["limit_us"].iloc[0]) for each in answers):
        upper.axhline(
            limit_us, color=style.ALARM, linewidth=1.4, label=f"limit {format_latency(limit_us)}", gid="limit"
        )
    _axes(upper, lower, answers)
    if lost := sum(int(each.rates["response_us"].isna().sum()) for each in answers):
        style.note(figure, f"not shown: {lost} {'rate' if lost == 1 else 'rates'} whose requests were not all served")
    ax.legend(figure, upper)
    return figure


def _name(each: LoadAnswer, answers: Sequence[LoadAnswer]) -> str:
    """Return what distinguishes a load from the others: drive, run, workload; its percentile if it is alone."""
    if len(answers) == 1:
        return f"p{each.rates['percentile'].iloc[0]:g}"
    first = each.rates.iloc[0]
    several_runs = any(other.rates["run"].iloc[0] != first["run"] for other in answers)
    several_loads = any(other.label != each.label for other in answers)
    parts = [str(first["drive"]), f"run {first['run']}" if several_runs else "", each.label if several_loads else ""]
    return ", ".join(filter(None, parts))


def _curve(axes: Axes, each: LoadAnswer, colour: style.Colour, name: str) -> None:
    """Draw the limited percentile with its intervals, and the band of the answer."""
    rates = each.rates[each.rates["response_us"].notna()]
    found = each.found
    if found.passing_iops is not None and found.failing_iops is not None:
        axes.axvspan(found.passing_iops, found.failing_iops, color=style.MUTED, alpha=0.2, linewidth=0, gid="answer")
    (line,) = axes.plot(rates["rate_iops"], rates["response_us"], color=colour, linewidth=1.6, marker="o", markersize=5,
                        label=name, gid="percentile")  # fmt: skip
    say(line, ["; ".join([row.outcome, *row.doubts, _interval(row.low_us, row.high_us)]) for row in rates.itertuples()])
    undecided = rates[~rates["outcome"].isin(_FILLED)]
    if len(undecided):
        axes.plot(undecided["rate_iops"], undecided["response_us"], linestyle="none", marker="o", markersize=5,
                  markerfacecolor="white", markeredgecolor=colour, label=name, gid="undecided")  # fmt: skip
    ax.whiskers(axes, rates["low_us"], rates["high_us"].fillna(rates["response_us"]), rates["rate_iops"], upright=True,
                color=colour, linewidth=1, label=name)  # fmt: skip
    open_end = rates[rates["high_us"].isna()]
    axes.plot(open_end["rate_iops"], 1.1 * open_end["response_us"], linestyle="none", marker="^", markersize=6,
              color=colour, label=name, gid="interval")  # fmt: skip


def _interval(low_us: float, high_us: float) -> str:
    return f"interval: {format_latency(low_us)} to {format_latency(high_us) if high_us == high_us else 'no upper end'}"


def _axes(upper: Axes, lower: Axes, answers: Sequence[LoadAnswer]) -> None:
    rates = pd.concat([each.rates for each in answers])
    shown = [column for column in ("response_us", "low_us", "high_us", "limit_us") if rates[column].notna().any()]
    shown += list(_OTHERS) if len(answers) == 1 else []
    values = rates[shown].to_numpy(float)
    values = values[np.isfinite(values) & (values > 0)]
    ax.log_axis(upper, "y", float(values.min()), float(values.max()), LATENCY)
    ax.log_axis(upper, "x", float(rates["rate_iops"].min()), float(rates["rate_iops"].max()))
    upper.set_ylabel("Response time (µs, ms, s), log scale")
    lower.set_ylabel("Completed (%)")
    lower.set_ylim(0, 110)
    lower.set_xlabel("Offered rate (IOPS), log scale")
    tell(lower.yaxis, lambda share: f"{share:.4g} % of the offered rate")
