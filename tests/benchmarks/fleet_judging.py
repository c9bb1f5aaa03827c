"""Measure how fast a large fleet finds the drives with work to do.

    python tests/benchmarks/fleet_judging.py [DRIVES]

Default: 1,000 drives, eleven measurements of three runs each, all finished, with manifests of 256 B. The exit status is
1 when a bar is missed, or a drive is not found to be up to date.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.recording.writer import MANIFEST
from drivelab.workflow.fleet import _MADE, Fleet, evidence_digest
from drivelab.workflow.layout import Layout

ROOT = Path(__file__).resolve().parents[2]
MOST_S = 2.0
"""Most CPU time to read 33,000 manifests."""
MANIFEST_BYTES = 256
PROTOCOLS = ("pts-iops", "pts-throughput", "pts-latency", "pts-write-saturation", "pts-idle-recovery",
             "pts-cross-stimulus-recovery", "pts-response-time-histogram", "pts-demand-intensity", "qos-nines",
             "stec-block-sizes")  # fmt: skip
STUDY = """\
name: many
results: results
drives_sheet: many.tsv
fleet: true
runs: 3
drives: [{drives}]
measurements: [{measurements}]
"""


def make(count: int) -> Path:
    """Make a study of many drives in the current folder; return its path."""
    Path("config").symlink_to(ROOT / "config")
    names = [f"d{number}" for number in range(1, count + 1)]
    rows = [f"{name}\t/dev/disk/by-id/{name}\tS-{name}\tyes\t\t7\n" for name in names]
    Path("many.tsv").write_text("drive\tdevice\tserial\tdestructive\tnote\tover_provisioning_pct\n" + "".join(rows))
    chosen = ", ".join(f"{{protocol: {name}}}" for name in PROTOCOLS)
    study = Path("study.yaml")
    study.write_text(STUDY.format(drives=", ".join(names), measurements=chosen))
    return study


def finish(fleet: Fleet) -> int:
    """Write the files of finished parts; return the number of recordings."""
    for drive, plans in fleet.plans.items():
        part = fleet.results / "drives" / drive
        for path in [part / name for name in _MADE]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        for planned in plans:
            planned.plan.recording_path.mkdir(parents=True)
            (planned.plan.recording_path / MANIFEST).write_bytes(os.urandom(MANIFEST_BYTES))
        outcome = {"state": "measured", "stamp": fleet.stamps[drive], "evidence": evidence_digest(plans)}
        (part / "outcome.1.json").write_text(json.dumps(outcome))
    return sum(map(len, fleet.plans.values()))


def main(count: int, folder: Path) -> int:
    os.chdir(folder)
    study = make(count)
    recordings = finish(Fleet(Layout(Campaign.load(study))))
    began_s = time.process_time()
    fleet = Fleet(Layout(Campaign.load(study)))
    planned_s = time.process_time()
    stamped = len(fleet.stamps)
    stamped_s = time.process_time()
    digests = [evidence_digest(plans) for plans in fleet.plans.values()]
    read_s = time.process_time() - stamped_s
    ended_s = time.process_time()
    stale = fleet.stale()
    print(f"{stamped} drives, {recordings} recordings: planned in {planned_s - began_s:.1f} s of CPU, "
          f"stamps in {stamped_s - planned_s:.1f} s, {len(digests)} digests made in {read_s:.2f} s")  # fmt: skip
    most_s = MOST_S * max(recordings, 1000) / 33_000
    bad = read_s > most_s or bool(stale)
    print(f"judged in {time.process_time() - ended_s:.2f} s, {len(stale)} of {stamped} to do"
          f" (bar for reading {most_s:.1f} s, none to do){' MISSED' if bad else ''}")  # fmt: skip
    return int(bad)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, Path(temporary)))
