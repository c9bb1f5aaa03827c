"""A fleet: a study that runs drive by drive, each part in a separate Snakemake.

Each drive is a part with its own results; a last step joins the parts. Snakemake needs half a millisecond to plan a
job, and at least as much per output. For 30,000 recordings with their seals, tables and figures it would need a quarter
of an hour and gigabytes before the first drive starts.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from drivelab.campaign.planning import Campaign, Planned
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.plan.plan import canonical
from drivelab.plan.study import PARTS
from drivelab.recording.writer import MANIFEST, write_json
from drivelab.run.consent import snakemake_arguments
from drivelab.workflow.digest import digest
from drivelab.workflow.failures import SAID, reasons
from drivelab.workflow.layout import Layout
from drivelab.workflow.scheduling import Scheduling, Use

OUTCOME = "outcome.{turn}.json"
"""File of a part: whether it succeeded, and what it was made from. Snakemake checks only the existence of files that it
has no record of; so a part with work left requires the file of its next turn, which does not exist yet."""
_NAMED = 3
"""Failed drives named in a message."""
_MADE = ("tables/summary.parquet", "tables/exclusions.parquet", "tables/conditions.parquet", "tables/drives.parquet",
         "tables/hosts.parquet", "tables/traces.parquet", "report/index.html", "report/pts-pages.pdf")  # fmt: skip
"""Final files of a part, which the last step joins."""
_NO_PART_OF_STAMPS = ("altered", "protocols", "basis", "clock_reason", "cannot_capture")
"""Facts of a study's report that stamps omit: the first two are in each plan's mark, the basis matters only to the
join, and the others differ between the host that starts a fleet and the hosts that run its parts."""


class Fleet:
    """The jobs of a fleet for the workflow, and which of them have work left."""

    def __init__(self, layout: Layout, *, judges: bool = True) -> None:
        """Without `judges`, accept existing outcomes unchecked: for jobs of a run that has already checked them."""
        self.judges = judges
        self.campaign, self.layout = layout.campaign, layout
        self.results = self.campaign.study.results

    def path(self, pattern: str) -> str:
        """Return a path in the results folder."""
        return f"{self.results}/{pattern}"

    @cached_property
    def plans(self) -> Mapping[str, list[Planned]]:
        """Plans by drive, in the study's order, that are measured or recorded here."""
        by_drive: dict[str, list[Planned]] = {drive: [] for drive in self.campaign.study.drives}
        for planned in self.campaign.plans:
            by_drive[planned.plan.sheet_drive].append(planned)
        return {drive: plans for drive, plans in by_drive.items() if plans}

    @cached_property
    def stamps(self) -> Mapping[str, str]:
        """Digest by drive of everything that its part depends on: plans, analysis settings, code."""
        common = _common(self.layout)
        return {drive: _stamp(common, plans) for drive, plans in self.plans.items()}

    def outcomes(self) -> list[str]:
        """Return the outcome files of all drives, in the study's order; for a drive with work left, the next one."""
        return [str(self._outcome(drive, turn)) for drive, turn in self._turns.items()]

    def stale(self) -> list[str]:
        """Return the drives with work left, because of plans, analysis, lost files, or a failure."""
        return [drive for drive in self.plans if not self._is_current(drive)]

    @cached_property
    def _turns(self) -> Mapping[str, int]:
        stale = set(self.stale()) if self.judges else ()
        return {drive: self._last_turn(drive) + (drive in stale) for drive in self.plans}

    def targets(self) -> list[str]:
        """Return the files of a finished fleet in addition to its parts."""
        names = ("fleet_drives", "fleet_spread", "fleet_deviations", "fleet_hosts", "model_deltas")
        tables = [self.path(f"tables/{name}.parquet") for name in names]
        last = ("tables/deltas/drives.txt", "report/index.html", "complete.txt")
        return [*tables, *map(self.path, last)]

    def resources(self, scheduling: Scheduling) -> dict[str, Use]:
        """Return the resources of a job that runs a part, with the wildcard `drive`."""
        return scheduling.part(lambda drive: [planned.plan for planned in self.plans[drive]])

    def priority(self, wildcards: Any) -> int:
        """Return the priority of a part: a host measures its drives in the order of the study."""
        first = min(self.campaign.order(planned.plan) for planned in self.plans[wildcards.drive])
        return len(self.campaign.wanted) - first

    def report_facts(self) -> dict[str, Any]:
        """Return the facts of the study for the fleet's tables and report."""
        study, plans = self.campaign.study, self.campaign.plans
        return {
            "name": study.name,
            "title": study.title,
            "basis": study.basis,
            "comparison": self.layout.comparison(),
            "intended": study.intended,
            "models": self.layout.models(),
            "clock_reason": self.campaign.clock[1] if any(planned.plan.virtual for planned in plans) else None,
            "altered": sorted(
                {f"{planned.protocol.name}: {change}" for planned in plans for change in planned.altered}
            ),
            "elsewhere": sorted({planned.plan.sheet_drive for planned in self.campaign.elsewhere} - self.plans.keys()),
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
    """Return the present stamp of a part, as in `Fleet.stamps`."""
    return _stamp(_common(part), part.campaign.plans)


def evidence_digest(plans: Iterable[Planned]) -> str | None:
    """Return a digest over the recordings' manifests, in any order.

    None if one is missing or unreadable. All manifests are read, because copied files keep their modification times;
    33,000 take a second.
    """
    whole = hashlib.sha256()
    try:
        for plan in sorted((planned.plan for planned in plans), key=lambda plan: plan.recording):
            manifest = hashlib.sha256((plan.recording_path / MANIFEST).read_bytes())
            whole.update(f"{manifest.hexdigest()}  {plan.recording}\n".encode())
    except OSError:
        return None
    return whole.hexdigest()[:16]


def turns_of(part: Path) -> list[int]:
    """Return the turns of a part's outcome files."""
    return [int(path.name.split(".")[1]) for path in part.glob(OUTCOME.format(turn="*"))]


def read_outcome(path: Path) -> dict[str, Any] | None:
    """Return the outcome of a part; None if the file is missing or incomplete."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _common(layout: Layout) -> str:
    """Return what all parts of a study depend on; the study and each part give the same text."""
    study = layout.campaign.study
    facts = {name: value for name, value in layout.report_facts().items() if name not in _NO_PART_OF_STAMPS}
    return canonical(
        {
            "facts": facts,
            "clock": layout.campaign.clock[1] if study.clock == "virtual" else study.clock,
            "limits": layout.taint_limits(),
            "png": layout.png,
            "code": digest("analysis", "collect"),
        }
    )


def _stamp(common: str, plans: Sequence[Planned]) -> str:
    marks = [f"{planned.plan.recording} {'; '.join(planned.altered)}" for planned in plans]
    for name, body in {planned.protocol.name: planned.protocol.body for planned in plans}.items():
        labels = {key: str(body[key]) for key in ("title", "source")}
        marks.append(canonical({"protocol": name, **labels, "analysis": dict(body.get("analysis", {}))}))
    return hashlib.sha256("\n".join((common, *sorted(marks))).encode()).hexdigest()[:16]


def outcomes_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read outcomes from their files; raises UserError for an unreadable file."""
    outcomes = []
    for path in paths:
        outcome = read_outcome(path)
        if outcome is None:
            raise UserError(f"{path}: cannot be read; delete it and run again")
        outcomes.append(outcome)
    return outcomes


def require_complete(outcomes: Sequence[Mapping[str, Any]], report: str) -> None:
    """Raise UserError if drives failed; the message names the first few and their reasons."""
    failed = {outcome["drive"]: "; ".join(outcome["reasons"]) for outcome in outcomes if outcome["state"] != "measured"}
    if failed:
        details = ". ".join(f"Drive '{drive}': {reason}" for drive, reason in list(failed.items())[:_NAMED])
        more = f" And {len(failed) - _NAMED} more, see {report}." if len(failed) > _NAMED else ""
        raise UserError(
            f"{len(failed)} of {len(outcomes)} drives were not measured; fix the causes and run again, the other "
            f"drives are kept. {details}.{more}"
        )


def carry_out(study: Path, drive: str, stamp: str, cores: int, output: Path, options: Sequence[str] = ()) -> int:
    """Run the remaining work of a drive's part and write its outcome to `output`.

    Returns 0 once that is written. `stamp` is the part's stamp from `drivelab.workflow.fleet`; `options` are settings
    for Snakemake's --config. An interrupted part has no outcome, and resumes when it runs again. The folder is not
    locked: the outer Snakemake holds its lock and starts one job per drive, and no two drives share files.

    Raises UserError, and writes no outcome, if the part does not match the stamp, before or after the run. The user
    approved a different part, and the new files would wrongly count as up to date.
    """
    campaign = _as_planned(study, drive, stamp, options)
    Layout(campaign).drop_stale_plans()  # the part's Snakemake does not, because the outer Snakemake holds the lock
    log = campaign.study.results / "logs/snakemake.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    config = [f"study={study}", f"drive={drive}", *options]
    command = [*programs.python("-m", "snakemake"), *snakemake_arguments(), "--nolock", "--cores", str(cores),
               "--nocolor", "--config", *config]  # fmt: skip
    environment = {
        **os.environ,
        **programs.SAFE_PATH,
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
    }
    with log.open("w") as file:
        status = programs.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment).returncode
    if status < 0:
        print(f"{SAID}the part of drive '{drive}' was killed by signal {-status}; run again", file=sys.stderr)
        return 1
    if not status:  # a failed part is never up to date; report its reasons instead
        campaign = _as_planned(study, drive, stamp, options)
    manifests = [planned.plan.recording_path / MANIFEST for planned in campaign.plans]
    write_json(
        output,
        {
            "drive": drive,
            "subjects": list(dict.fromkeys(planned.plan.drive for planned in campaign.plans)),
            "state": "failed" if status else "measured",
            "reasons": reasons(log.read_text(errors="replace")) if status else [],
            "recordings": sum(manifest.exists() for manifest in manifests),
            "planned": len(manifests),
            "results": str(campaign.study.results),
            "stamp": stamp,
            "evidence": evidence_digest(campaign.plans),
        },
    )
    for earlier in output.parent.glob(OUTCOME.format(turn="*")):
        if earlier != output:
            earlier.unlink()
    return 0


def _as_planned(study: Path, drive: str, stamp: str, options: Sequence[str]) -> Campaign:
    """Load the part from its present files; raises UserError if it does not match the stamp."""
    png = dict(option.split("=", 1) for option in options).get("png", "yes") == "yes"
    part = Layout(Campaign.load(study, drive=drive), png=png)
    if stamp_of(part) != stamp:
        raise UserError(
            f"drive '{drive}': the study changed during the run ({study}, a file that it names, or drivelab itself); "
            "run again"
        )
    return part.campaign
