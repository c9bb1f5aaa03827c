"""Carries out a part of a fleet: the study's own workflow, for one drive, by a Snakemake of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from drivelab import parent
from drivelab.errors import UserError
from drivelab.recording.writer import MANIFEST, write_json
from drivelab.stages.failures import SAID, sentences
from drivelab.stages.fleet import OUTCOME, evidence_digest, stamp_of
from drivelab.stages.layout import Layout
from drivelab.stages.planning import Campaign
from drivelab.stages.restored_study import snakemake_arguments


def carry_out(study: Path, drive: str, stamp: str, cores: int, output: Path, options: Sequence[str] = ()) -> int:
    """Run what is left of a drive's part; write its outcome, good or bad, to `output`. Returns 0 when that is written.

    `stamp` is what `drivelab.stages.fleet` knows it by, `options` are settings of Snakemake's --config. A part that was
    interrupted has no outcome, and goes on where it stopped when it is run again. The folder is not locked: the outer
    Snakemake holds its lock and starts one job for each drive, whose files are no other's.

    Raises UserError, and writes no outcome, if the part is no longer the one of the stamp, before or after it was
    carried out: what was approved is another one, and by that stamp what is made now would count as up to date.
    """
    campaign = _as_planned(study, drive, stamp, options)
    Layout(campaign).drop_stale_plans()  # its Snakemake does not, as one that has the whole study locked is at work
    log = campaign.study.results / "logs/snakemake.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    config = [f"study={study}", f"drive={drive}", *options]
    command = [sys.executable, "-m", "snakemake", *snakemake_arguments(), "--nolock", "--cores", str(cores),
               "--nocolor", "--config", *config]  # fmt: skip
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}
    with log.open("w") as file:
        status = parent.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment).returncode
    if status < 0:
        print(f"{SAID}the part of drive '{drive}' was killed by signal {-status}; run again to go on", file=sys.stderr)
        return 1
    if not status:  # one that failed is not up to date by any stamp, and its reasons are worth more
        campaign = _as_planned(study, drive, stamp, options)
    recordings = [one.plan.recording_path / MANIFEST for one in campaign.plans]
    write_json(
        output,
        {
            "drive": drive,
            "subjects": list(dict.fromkeys(one.plan.drive for one in campaign.plans)),
            "state": "failed" if status else "measured",
            "reasons": reasons(log.read_text(errors="replace")) if status else [],
            "recordings": sum(one.exists() for one in recordings),
            "planned": len(recordings),
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
    """The part as its files say now; raises UserError if it is not the one of the stamp."""
    png = dict(one.split("=", 1) for one in options).get("png", "yes") == "yes"
    part = Layout(Campaign.load(study, drive=drive), png=png)
    if stamp_of(part) != stamp:
        raise UserError(
            f"drive '{drive}': the study was changed while it ran ({study}, a file that it names, or drivelab itself); "
            "run again"
        )
    return part.campaign


def reasons(snakemake_log: str) -> list[str]:
    """The sentences with which jobs failed, each once; of a workflow that did not begin the last line of its log."""
    said = [one.removeprefix(SAID) for one in sentences(snakemake_log)]
    last = [line.strip() for line in snakemake_log.splitlines() if line.strip()][-1:]
    return list(dict.fromkeys(said)) or last or ["Snakemake ended without a word"]
