"""Carries out a part of a fleet: the study's own workflow, for one drive, by a Snakemake of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from drivelab.parent import ending_with_parent
from drivelab.recording.writer import MANIFEST, write_json
from drivelab.stages.failures import SAID, sentences
from drivelab.stages.fleet import OUTCOME
from drivelab.stages.planning import Campaign


def carry_out(study: Path, drive: str, stamp: str, cores: int, output: Path, options: Sequence[str] = ()) -> int:
    """Run what is left of a drive's part; write its outcome, good or bad, to `output`. Returns 0 when that is written.

    `stamp` is what `drivelab.stages.fleet` knows it by, `options` are settings of Snakemake's --config. A part that was
    interrupted has no outcome, and goes on where it stopped when it is run again. The folder is not locked: the outer
    Snakemake holds its lock and starts one job for each drive, whose files are no other's.
    """
    campaign = Campaign.load(study, drive=drive)
    log = campaign.study.results / "logs/snakemake.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    config = [f"study={study}", f"drive={drive}", *options]
    command = [*ending_with_parent("KILL"), sys.executable, "-m", "snakemake", "--nolock", "--cores", str(cores),
               "--nocolor", "--config", *config]  # fmt: skip
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}
    with log.open("w") as file:
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=environment, check=False
        ).returncode
    if status < 0:
        print(f"{SAID}the part of drive '{drive}' was killed by signal {-status}; run again to go on", file=sys.stderr)
        return 1
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
        },
    )
    for earlier in output.parent.glob(OUTCOME.format(turn="*")):
        if earlier != output:
            earlier.unlink()
    return 0


def reasons(snakemake_log: str) -> list[str]:
    """The sentences with which jobs failed, each once; of a workflow that did not begin the last line of its log."""
    said = [one.removeprefix(SAID) for one in sentences(snakemake_log)]
    last = [line.strip() for line in snakemake_log.splitlines() if line.strip()][-1:]
    return list(dict.fromkeys(said)) or last or ["Snakemake ended without a word"]
