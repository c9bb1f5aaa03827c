"""Run a part of a fleet: the study's workflow for one drive, in a separate Snakemake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.recording.writer import MANIFEST, write_json
from drivelab.run.consent import snakemake_arguments
from drivelab.workflow.failures import SAID, reasons
from drivelab.workflow.fleet import OUTCOME, evidence_digest, stamp_of
from drivelab.workflow.layout import Layout


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
    command = [sys.executable, "-m", "snakemake", *snakemake_arguments(), "--nolock", "--cores", str(cores),
               "--nocolor", "--config", *config]  # fmt: skip
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}
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
