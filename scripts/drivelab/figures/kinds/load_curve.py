"""Response time against the rate of an open-loop load, and how much of the rate the drive delivers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values.load_values import LoadAnswer, load_answers
from drivelab.core.units import counted
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import LATENCY, format_latency
from drivelab.figures.base.words import say
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

_OTHERS = {"p50_response_us": ("median", "--"), "p99_response_us": ("p99", ":")}
"""Further percentiles, shown for a single load."""
_MOST_NOTES = 4


def load_curve(load_rates: pd.DataFrame) -> Figure:
    """Draw a curve for each load of each recording, with its limit and its answer; response time logarithmic."""
    selection.require_one(load_rates, "measurement", "load_rates")
    answers = list(load_answers(load_rates))
    if not answers:
        raise ValueError("table 'load_rates' has no rate that counts")
    names = _names(answers)
    figure = style.new_figure("Response time against offered rate", height_in=5.4)
    for name, answer in zip(names, answers, strict=True) if len(answers) <= _MOST_NOTES else ():
        style.note(figure, f"{name}: {answer.sentence()}" if len(answers) > 1 else answer.sentence())
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    drives = [str(answer.rates["drive"].iloc[0]) for answer in answers]
    looks = overlay.looks(drives)
    colours = style.colours(len(answers)) if len(looks) == 1 else [looks[drive].colour for drive in drives]
    for name, answer, colour in zip(names, answers, colours, strict=True):
        _curve(upper, answer, colour, name)
        share = 100 * answer.rates["achieved_iops"] / answer.rates["rate_iops"]
        lower.plot(answer.rates["rate_iops"], share, color=colour, linewidth=1.4, marker="o", markersize=3.5,
                   label=name, gid="delivered")  # fmt: skip
    for column, (name, dash) in _OTHERS.items() if len(answers) == 1 else ():
        rates = answers[0].rates[answers[0].rates[column].notna()]
        if len(rates) and name != names[0]:
            upper.plot(rates["rate_iops"], rates[column], color=style.MUTED, linestyle=dash, linewidth=1.2, label=name,
                       gid=name)  # fmt: skip
    rates = pd.concat([answer.rates for answer in answers])
    for limit_us in rates["limit_us"].astype(float).drop_duplicates():
        upper.axhline(limit_us, color=style.ALARM, linewidth=1.4, label=f"limit {format_latency(limit_us)}",
                      gid="limit")  # fmt: skip
    shown = ["response_us", "low_us", "high_us", "limit_us", *(_OTHERS if len(answers) == 1 else ())]
    values = rates[shown].to_numpy(float)
    values = values[np.isfinite(values) & (values > 0)]
    ax.log_axis(upper, "y", float(values.min()), float(values.max()), LATENCY)
    ax.log_axis(upper, "x", float(rates["rate_iops"].min()), float(rates["rate_iops"].max()))
    upper.set_ylabel("Response time (µs, ms, s), log scale")
    lower.set(ylabel="Completed (%)", ylim=(0, 110), xlabel="Offered rate (IOPS), log scale")
    if lost := int(rates["response_us"].isna().sum()):
        style.note(figure, f"not shown: {counted(lost, 'rate')} whose requests were not all served")
    ax.legend(figure, upper)
    return figure


def _names(answers: Sequence[LoadAnswer]) -> list[str]:
    """Return what distinguishes each load from the others: drive, run, workload; the percentile of a single one."""
    firsts = [answer.rates.iloc[0] for answer in answers]
    if len(answers) == 1:
        return [f"p{firsts[0]['percentile']:g}"]
    several_runs = len({first["run"] for first in firsts}) > 1
    several_loads = len({answer.label for answer in answers}) > 1
    return [str(first["drive"]) + (f", run {first['run']}" if several_runs else "")
            + (f", {answer.label}" if several_loads else "")
            for first, answer in zip(firsts, answers, strict=True)]  # fmt: skip


def _curve(axes: Axes, answer: LoadAnswer, colour: style.Colour, name: str) -> None:
    """Draw the limited percentile with its intervals, and the band of the answer."""
    rates, found = answer.rates[answer.rates["response_us"].notna()], answer.found
    if found.passing_iops is not None and found.failing_iops is not None:
        axes.axvspan(found.passing_iops, found.failing_iops, color=style.MUTED, alpha=0.2, linewidth=0, gid="answer")
    (line,) = axes.plot(rates["rate_iops"], rates["response_us"], color=colour, linewidth=1.6, marker="o", markersize=5,
                        label=name, gid="percentile")  # fmt: skip
    say(line, ["; ".join([row.outcome, *row.doubts, _interval(row.low_us, row.high_us)]) for row in rates.itertuples()])
    ax.whiskers(axes, rates["low_us"], rates["high_us"].fillna(rates["response_us"]), rates["rate_iops"], upright=True,
                color=colour, linewidth=1, label=name)  # fmt: skip
    undecided, open_end = rates[~rates["outcome"].isin(["passes", "fails"])], rates[rates["high_us"].isna()]
    marks: Any = (
        (undecided, 1.0, "undecided", {"marker": "o", "markersize": 5, "markerfacecolor": "white"}),
        (open_end, 1.1, "interval", {"marker": "^", "markersize": 6}),
    )
    for rows, factor, gid, look in marks:
        if len(rows):
            axes.plot(rows["rate_iops"], factor * rows["response_us"], linestyle="none", color=colour, label=name,
                      gid=gid, **look)  # fmt: skip


def _interval(low_us: float, high_us: float) -> str:
    return f"interval: {format_latency(low_us)} to {format_latency(high_us) if high_us == high_us else 'no upper end'}"
