"""What the analyses and the report need to know of a study besides its recordings, in values of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from drivelab.campaign.planning import Campaign, Planned
from drivelab.criteria.repeats import FEWEST
from drivelab.plan.design import JUDGED
from drivelab.plan.study import Study
from drivelab.recording.writer import UNFINISHED, read_object
from drivelab.run.progress import read_aside, read_status


def analysis_facts(campaign: Campaign, plans: Sequence[Planned]) -> dict[str, Any]:
    """Return the facts for `drivelab.analysis.study_tables`; `plans` are those whose recordings are analysed."""
    study, history = campaign.study, looks(campaign.study)
    models: dict[str, str] = {}
    for subject in study.subjects:
        drive, at, platform = subject.partition("@")
        if model := campaign.sheet[drive].model:
            models[subject] = f"{model}{at}{platform}"
    recordings = [known.plan.recording for known in plans]
    folder = study.results / "recordings"
    present = {str(path.parent.relative_to(folder)) for path in folder.glob("*/*/*/plan.json")}
    others = sorted(name for name in present - {*recordings} if not UNFINISHED.search(name))
    return {
        "recordings": recordings,
        "others": [str(folder / name) for name in others],
        "drives": list(study.subjects),
        "measurements": sorted({wanted.plan.measurement for wanted in campaign.wanted}),
        "rse_threshold_pct": study.rse_threshold_pct,
        "scores": {known.plan.measurement: dict(known.protocol.body.get("analysis", {})) for known in plans},
        "score_sets": study.scores,
        "basis": study.basis,
        "missing": list(_missing(campaign, {*recordings})),
        "models": models,
        "altered": {known.plan.recording: list(known.altered) for known in plans},
        "pairs": [(study.basis, subject) for subject in study.subjects if subject != study.basis],
        "intended": study.intended,
        "looks": history,
        "level": broken_level(history),
        "comparison": {
            "margin_pct": study.margin_pct,
            "confidence_pct": study.verdict_confidence_pct,
            "unintended": study.unintended,
        },
    }


def looks(study: Study) -> list[dict[str, str]]:
    """Return the terms of each look at verdicts, the present ones last; without FEWEST runs there is no verdict."""
    of_growth = f"{study.growth.least} to {study.growth.most}" if study.growth else ""
    terms = {f"runs of {choice.name} of {drive}@{platform}": of_growth or str(runs) for choice in study.measurements
             for (drive, platform), runs in choice.runs.items() if runs >= FEWEST}  # fmt: skip
    earlier: list[dict[str, str]] = read_object(study.results / JUDGED).get("looks", [])
    if not terms or len(study.subjects) < 2:
        return earlier
    terms |= {"margin": f"{study.margin_pct:g} %", "basis": study.basis, "confidence": f"{study.confidence_pct:g} %"}
    return [*takewhile(lambda known: known != terms, earlier), terms]


def broken_level(history: Sequence[Mapping[str, str]]) -> str:
    """Say which terms changed after a look, so that the confidence no longer holds; empty if none did."""
    changed: dict[str, str] = {}
    for name in history[-1] if history else ():
        values = dict.fromkeys(terms[name] for terms in history if name in terms)
        if len(values) > 1:
            changed.setdefault(name.partition(" of ")[0], ", then ".join(values))
    words = "; ".join(f"{name} changed after a look: {values}" for name, values in changed.items())
    grow = " (a growing study, `runs: {least: 3, most: 9, until: decided}`, keeps it)" if "runs" in changed else ""
    return words and f"{words}; the confidence of {history[-1]['confidence']} no longer holds{grow}"


def _missing(campaign: Campaign, there: set[str]) -> Iterator[dict[str, str]]:
    """Yield each recording of the study that is not there, and why."""
    results = campaign.study.results
    last = {status.recording: status for status in read_status(results)}
    for plan in (planned.plan for planned in campaign.plans if planned.plan.recording not in there):
        status = last.get(plan.recording) or read_aside(results, plan.recording)
        words = "it was not begun" if status is None else status.reason or f"{status.stage} ended without a message"
        yield {"recording": plan.recording, "drive": plan.drive, "measurement": plan.measurement, "words": words}


def report_facts(
    campaign: Campaign,
    plans: Sequence[Planned],
    facts: Mapping[str, Any],
    comparisons: Sequence[str],
    traces: Sequence[str],
) -> dict[str, Any]:
    """Return the facts for `drivelab.report.content.write_report`: `facts` of the analyses, and more.

    `comparisons` and `traces` are the names of those with figures.
    """
    study = campaign.study
    protocols = {planned.protocol.name: planned.protocol for planned in plans}
    return {
        **facts,
        **facts["comparison"],
        "name": study.name,
        "title": study.title,
        "comparisons": comparisons,
        "traces": traces,
        "scores": {name: list(members) for name, members in study.scores.items()},
        "scenario": study.scenario,
        "growth": study.growth and study.growth.facts(study.confidence_pct),
        "clock_reason": campaign.clock[1] if any(planned.plan.virtual for planned in plans) else None,
        "cannot_capture": campaign.traces.cannot_capture if study.traces else None,
        "protocols": {
            name: {key: str(protocol.body[key]) for key in ("title", "source")} for name, protocol in protocols.items()
        },
    }
