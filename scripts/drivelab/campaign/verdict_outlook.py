"""Say before a study runs which differences its recordings can show."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from drivelab.core.units import counted, format_percentage
from drivelab.criteria.repeats import FEWEST

if TYPE_CHECKING:
    from drivelab.campaign.planning import Campaign


def verdict_outlook(campaign: Campaign) -> str | None:
    """Return which differences the study can show, and how many recordings its margin needs.

    The scatter between recordings is that of the study's finished ones, else assumed. None for a study that compares
    nothing.
    """
    from drivelab.analysis.deltas.power import MOST_RECORDINGS, POWER, detectable, recordings_for

    study = campaign.study
    if len(study.subjects) < 2 or not campaign.plans:
        return None
    confidence_pct, margin = study.confidence_pct, math.log1p(study.margin_pct / 100)
    recordings = min(Counter((planned.plan.drive, planned.plan.measurement) for planned in campaign.plans).values())
    if study.growth is not None:
        recordings = study.growth.most
        confidence_pct = study.growth.confidence_pct(confidence_pct, recordings)
    alpha = 1 - confidence_pct / 100
    scatter, source = _scatter(campaign)
    seen = max(recordings, FEWEST)
    least = 100 * math.expm1(detectable(scatter, seen, alpha))
    needed = recordings_for(scatter, margin, alpha)
    if recordings < FEWEST:
        begin = f"none with {counted(recordings, 'recording')} of each drive and measurement; {seen} would show"
    else:
        begin = f"{'at most ' if study.growth else ''}{seen} recordings of each drive and measurement show"
    end = ""
    if needed is None or needed > seen:
        how_many = f"more than {MOST_RECORDINGS}" if needed is None else needed
        end = f"; {how_many} would show the margin of {format_percentage(study.margin_pct)} %"
    return (
        f"Verdicts: {begin} a difference of {format_percentage(least)} % or more with probability {100 * POWER:.0f} %, "
        f"tested alone, if recordings scatter by {format_percentage(100 * scatter)} % ({source}){end}."
    )


def _scatter(campaign: Campaign) -> tuple[float, str]:
    """Return the standard deviation of the logarithm between recordings, and where it is from."""
    from drivelab.analysis.deltas.power import ASSUMED_SCATTER, scatter_of
    from drivelab.tables import io

    path = campaign.study.results / "tables/summary.parquet"
    scatter = scatter_of(io.read(path, "summary")) if path.exists() else None
    return (ASSUMED_SCATTER, "assumed") if scatter is None else (scatter, "as those so far")
