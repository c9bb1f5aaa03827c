"""Look at the comparisons of a growing study, and add runs where they can still decide one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from drivelab.analysis.deltas.inference import one_of_each
from drivelab.analysis.deltas.judging import UNSETTLED, ratios_of
from drivelab.analysis.deltas.power import FAINT, may_decide
from drivelab.analysis.verdict import FASTER, FASTER_BEYOND, SAME, SLOWER, SLOWER_BEYOND
from drivelab.campaign.planning import Campaign
from drivelab.core.units import counted
from drivelab.plan.design import Growth
from drivelab.plan.study import Study
from drivelab.report.delta import in_few_recordings, interval
from drivelab.report.headline import headline_inputs, headline_tests
from drivelab.report.inputs import Row
from drivelab.report.numbers import workload_words
from drivelab.tables.labels import SCORE

DECIDED_AT_THE_MARGIN = (FASTER_BEYOND, SAME, SLOWER_BEYOND)
_MOST_NAMED = 3


def headline_rows(campaign: Campaign) -> list[Row]:
    """Return the headline deltas of a finished study, one of each comparison; scores follow from them."""
    recordings = [planned.plan.recording for planned in campaign.plans]
    inputs = headline_inputs(campaign.study.results / "tables", recordings, campaign.study.basis)
    rows = headline_tests(inputs, "deltas")
    values = ((row["measurement"], row["comparison"], row["cell_label"], row["metric"]) for row in rows)
    return [rows[place] for place in one_of_each(values) if rows[place]["protocol"] != SCORE]


def look(study: Study, growth: Growth, headline: Sequence[Row]) -> tuple[Growth | None, tuple[str, ...]]:
    """Return the growth with one more run of each measurement that needs it, and what the look found.

    A measurement needs a run if one of its headline comparisons is not decided at the margin, and more runs can decide
    it. None instead of the growth if no measurement does.
    """
    runs, sentences = {}, []
    for choice in study.measurements:
        rows = [row for row in headline if row["measurement"].partition(".")[0] == choice.name]
        now = growth.runs(choice.name)
        undecided = [row for row in rows if row["verdict"] not in DECIDED_AT_THE_MARGIN]
        grows, sentence = False, f"{choice.name} after {counted(now, 'run')}: "
        if not undecided:
            sentence += f"{_tests(len(rows), len(rows))} decided at the margin." if rows else "nothing is compared."
        else:
            sentence += f"{_tests(len(undecided), len(rows))} undecided at the margin ({_named(undecided)}). "
            settling = [row for row in undecided if _is_settled_by_runs(row)]
            grows = now < growth.most and _may_decide(study, growth, settling)
            if grows:
                sentence += f"Run {now + 1} of at most {growth.most} is added."
            elif not settling:
                sentence += "More runs do not settle what stands against a verdict, so none is added."
            elif now < growth.most:
                sentence += (
                    f"Even {growth.most} runs would decide none of them with a probability of {100 * FAINT:.0f} %, so "
                    "none is added."
                )
            else:
                sentence += "That is the most."
        runs[choice.name] = now + grows
        sentences.append(sentence)
    added = any(count > growth.runs(name) for name, count in runs.items())
    return growth.grown(runs, tuple(sentences)) if added else None, tuple(sentences)


def _tests(count: int, total: int) -> str:
    if total == 1:
        return "the only headline test is"
    verb = "is" if count == 1 else "are"
    return f"all {total} headline tests are" if count == total else f"{count} of {total} headline tests {verb}"


def _named(rows: Sequence[Row]) -> str:
    """Return the first tests, with their intervals so far; with their verdicts where they have none."""
    named = [
        f"{row['comparison']}, {workload_words(row['cell_label'])}: {f'Δ {between}' if between else row['verdict']}"
        for row, between in ((row, interval(row)) for row in rows)
    ]
    left_out = len(named) - _MOST_NAMED
    return "; ".join([*named[:_MOST_NAMED], *([f"{left_out} more"] if left_out > 0 else [])])


def _is_settled_by_runs(row: Row) -> bool:
    """Return whether more recordings can decide an undecided comparison; not if a doubt stands against its values."""
    if in_few_recordings(row):
        return True
    if row["verdict"] in (FASTER, SLOWER):  # beyond the margin already, but for what the drives still approach
        mirrored = 100 * math.expm1(-math.log1p(row["margin_pct"] / 100))  # as far from equal as the margin
        return bool(row["interval_low_pct"] <= row["margin_pct"] and row["interval_high_pct"] >= mirrored)
    return row["p_adjusted"] == row["p_adjusted"] and row["p_adjusted"] is not None and UNSETTLED not in row["doubts"]


def _may_decide(study: Study, growth: Growth, rows: Sequence[Row]) -> bool:
    """Return whether the most runs may decide any of the comparisons at the margin."""
    if not rows or any(map(in_few_recordings, rows)):
        return bool(rows)
    table = pd.DataFrame(rows)
    alpha = 1 - growth.confidence_pct(study.confidence_pct, growth.most) / 100
    recordings = table[["basis_n", "comparison_n"]].min(axis=1).to_numpy(dtype=float)
    margin = math.log1p(study.margin_pct / 100)
    return bool(may_decide(ratios_of(table), recordings, growth.most, margin, alpha).any())
