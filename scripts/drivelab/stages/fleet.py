"""A study that is run drive by drive: each drive is a part with results of its own, a last step joins what they found.

Snakemake plans a job in half a millisecond, and one of its outputs in no less: 30,000 recordings with their seals,
tables and figures would take it a quarter of an hour and gigabytes before the first drive is touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from drivelab.config.code_digest import code_digest, files_digest
from drivelab.config.study import PARTS
from drivelab.errors import UserError
from drivelab.plan.plan import canonical
from drivelab.recording.writer import MANIFEST
from drivelab.stages.layout import Layout
from drivelab.stages.planning import Planned
from drivelab.stages.scheduling import Scheduling, Use

OUTCOME = "outcome.{turn}.json"
"""File of a part: whether it ended well, and what it was made by. Snakemake judges by existence alone what it has no
record of; so a part that there is something to do for has a file that is not there yet, that of its next turn."""
_NAMED = 3
"""Failed drives that are named in a sentence."""
_MADE = ("tables/summary.parquet", "tables/exclusions.parquet", "tables/conditions.parquet", "tables/drives.parquet",
         "tables/hosts.parquet", "tables/traces.parquet", "report/index.html", "report/pts-pages.pdf")  # fmt: skip
"""What a part has made at the last, and what is joined."""
_CODE = ("tables.collect", "tables.inventory", "tables.conditions", "analysis.summary", "analysis.exclusions",
         "analysis.differences", "analysis.windows", "analysis.detectors", "analysis.saturation_table",
         "trace.statistics.count", "figures.sheets", "report.study", "report.pdf", "report.typeset")  # fmt: skip
_PAGES = ("report", "parts", "reading", "charts", "pages")
_NO_PART_OF_STAMPS = ("altered", "protocols", "basis", "clock_reason", "cannot_capture")
"""Facts of a study's report: the first two are told plan by plan, the basis is for the join alone, and what a host can
do differs between the one that starts a fleet and those that carry out its parts."""
_TEMPLATES = (*(f"scripts/drivelab/report/templates/{name}.*" for name in _PAGES), "workflow/report/*.rst")


class Fleet:
    """The jobs of a fleet for the workflow, and which of them there is something to do for."""

    def __init__(self, layout: Layout, *, judges: bool = True) -> None:
        """Without `judges` the outcomes that are there are taken as they are: by jobs of a run that has judged."""
        self.judges = judges
        self.campaign, self.layout = layout.campaign, layout
        self.results = self.campaign.study.results

    def path(self, pattern: str) -> str:
        """A path in the results folder."""
        return f"{self.results}/{pattern}"

    @cached_property
    def plans(self) -> Mapping[str, list[Planned]]:
        """Plans by drive, in the study's order, of what is measured here or recorded here."""
        found: dict[str, list[Planned]] = {drive: [] for drive in self.campaign.study.drives}
        for one in self.campaign.plans:
            found[one.plan.sheet_drive].append(one)
        return {drive: plans for drive, plans in found.items() if plans}

    @cached_property
    def stamps(self) -> Mapping[str, str]:
        """Digest by drive of all that its part depends on: plans, settings of the analysis, its code."""
        common = _common(self.layout)
        return {drive: _stamp(common, plans) for drive, plans in self.plans.items()}

    def outcomes(self) -> list[str]:
        """Outcome files of all drives, in the study's order; of a drive that there is something to do for, the next."""
        return [str(self._outcome(drive, turn)) for drive, turn in self._turns.items()]

    def stale(self) -> list[str]:
        """Drives that there is something to do for: because of plans, analysis, lost files, or a failure."""
        return [drive for drive in self.plans if not self._is_current(drive)]

    @cached_property
    def _turns(self) -> Mapping[str, int]:
        stale = set(self.stale()) if self.judges else ()
        return {drive: self._last_turn(drive) + (drive in stale) for drive in self.plans}

    def targets(self) -> list[str]:
        """What a finished fleet has besides its parts."""
        names = ("fleet_drives", "fleet_spread", "fleet_deviations", "fleet_hosts")
        tables = [self.path(f"tables/{name}.parquet") for name in names]
        last = ("tables/deltas/drives.txt", "report/index.html", "complete.txt")
        return [*tables, *map(self.path, last)]

    def resources(self, scheduling: Scheduling) -> dict[str, Use]:
        """Resources of a job that carries out a part, with the wildcard `drive`."""
        return scheduling.part(lambda drive: [one.plan for one in self.plans[drive]])

    def priority(self, wildcards: Any) -> int:
        """Of a part: a host comes to its drives in the order of the study."""
        first = min(self.campaign.order(one.plan) for one in self.plans[wildcards.drive])
        return len(self.campaign.wanted) - first

    def limits(self, scheduling: Scheduling) -> dict[str, int]:
        """Limits of these resources. One job for each drive there is anyway, so drives are no resource."""
        return {name: limit for name, limit in scheduling.limits().items() if not name.startswith("drive_")}

    def report_facts(self) -> dict[str, Any]:
        """What the fleet's tables and report need to know of the study."""
        study, plans = self.campaign.study, self.campaign.plans
        return {
            "name": study.name,
            "title": study.title,
            "basis": study.basis,
            "comparison": self.layout.comparison(),
            "intended": study.intended,
            "clock_reason": self.campaign.clock[1] if any(one.plan.virtual for one in plans) else None,
            "altered": sorted({f"{one.protocol.name}: {words}" for one in plans for words in one.altered}),
            "elsewhere": sorted({one.plan.sheet_drive for one in self.campaign.elsewhere} - self.plans.keys()),
        }

    def _outcome(self, drive: str, turn: int) -> Path:
        return self.results / PARTS / drive / OUTCOME.format(turn=turn)

    def _last_turn(self, drive: str) -> int:
        return max(turns_of(self.results / PARTS / drive), default=0)

    def _is_current(self, drive: str) -> bool:
        outcome = read_outcome(self._outcome(drive, self._last_turn(drive)))
        if outcome is None or outcome["state"] != "measured" or outcome["stamp"] != self.stamps[drive]:
            return False
        part = self.results / PARTS / drive
        if not all((part / name).exists() for name in _MADE):
            return False
        evidence = evidence_digest(self.plans[drive])
        return evidence is not None and outcome.get("evidence") == evidence  # older outcomes have none


def stamp_of(part: Layout) -> str:
    """What `Fleet.stamps` has for the drive that the part is, as the part's files are now."""
    return _stamp(_common(part), part.campaign.plans)


def evidence_digest(plans: Iterable[Planned]) -> str | None:
    """Digest over the manifests of the recordings, in any order; None where one is missing or cannot be read.

    All are read, as files that were copied keep their times: a second for 33,000.
    """
    whole = hashlib.sha256()
    try:
        for plan in sorted((one.plan for one in plans), key=lambda plan: plan.recording):
            manifest = hashlib.sha256((plan.recording_path / MANIFEST).read_bytes())
            whole.update(f"{manifest.hexdigest()}  {plan.recording}\n".encode())
    except OSError:
        return None
    return whole.hexdigest()[:16]


def turns_of(part: Path) -> list[int]:
    """Turns that a part has outcomes of."""
    return [int(one.name.split(".")[1]) for one in part.glob(OUTCOME.format(turn="*"))]


def read_outcome(path: Path) -> dict[str, Any] | None:
    """The outcome of a part; None for one that is not there, or broke off."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _common(layout: Layout) -> str:
    """What all parts of a study depend on; of the study as of each part it is the same."""
    study = layout.campaign.study
    facts = {name: value for name, value in layout.report_facts().items() if name not in _NO_PART_OF_STAMPS}
    return canonical(
        {
            "facts": facts,
            "clock": layout.campaign.clock[1] if study.clock == "virtual" else study.clock,
            "limits": layout.taint_limits(),
            "png": layout.png,
            "code": code_digest(*_CODE),
            "templates": files_digest(*_TEMPLATES),
        }
    )


def _stamp(common: str, plans: Sequence[Planned]) -> str:
    marks = [f"{one.plan.recording} {'; '.join(one.altered)}" for one in plans]
    for name, body in {one.protocol.name: one.protocol.body for one in plans}.items():
        told = {key: str(body[key]) for key in ("title", "source")}
        marks.append(canonical({"protocol": name, **told, "analysis": dict(body.get("analysis", {}))}))
    return hashlib.sha256("\n".join((common, *sorted(marks))).encode()).hexdigest()[:16]


def outcomes_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Outcomes from their files; raises UserError for one that cannot be read."""
    found = []
    for path in paths:
        outcome = read_outcome(path)
        if outcome is None:
            raise UserError(f"{path}: cannot be read; delete it and run again")
        found.append(outcome)
    return found


def require_complete(outcomes: Sequence[Mapping[str, Any]], report: str) -> None:
    """Raise UserError with the drives that failed and why, the first of them by name."""
    failed = {one["drive"]: "; ".join(one["reasons"]) for one in outcomes if one["state"] != "measured"}
    if failed:
        told = ". ".join(f"Drive '{drive}': {reason}" for drive, reason in list(failed.items())[:_NAMED])
        more = f" And {len(failed) - _NAMED} more, see {report}." if len(failed) > _NAMED else ""
        raise UserError(
            f"{len(failed)} of {len(outcomes)} drives were not measured; mend that and run again, the others "
            f"are kept. {told}.{more}"
        )
