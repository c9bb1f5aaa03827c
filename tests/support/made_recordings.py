"""Make recordings on the virtual clock, and copies that tests can alter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from made_plans import made_plan
from stages import run_stages

from drivelab.fio.document import documents
from drivelab.plan.plan import Plan, canonical
from drivelab.recording.checksums import CHECKSUMS, MANIFEST

Job = dict[str, Any]
FILL = {"block_size_bytes": 131072, "capacity_multiple": 1, "pattern": "sequential", "queue_depth": 32}
SOAK = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 4, "slice_s": 0.1}


def made_recording(folder: Path, steps: Sequence[Mapping[str, Any]]) -> Path:
    """Return the recording of these steps on the virtual test drive, filled once."""
    plan = made_plan(folder, steps, {"fill": FILL})
    run_stages(plan, folder)
    return plan.recording_path


def copied(recording: Path, results: Path) -> Path:
    """Copy a recording to another results folder, without checksums, so that changes look measured."""
    place = results / "recordings" / Path(*recording.parts[-3:])
    shutil.copytree(recording, place)
    without_checksums(place)
    return place


def another_run(recording: Path, run: int) -> Path:
    """Copy a recording to the same folder as another run, without checksums."""
    plan = Plan.read(recording / "plan.json")
    again = Plan(plan.subject, {**plan.context, "run": run})
    place = recording.with_name(f"{plan.digest}-run{run}")
    shutil.copytree(recording, place)
    without_checksums(place)
    (place / "plan.json").write_text(again.to_json())
    manifest = json.loads((place / MANIFEST).read_text())
    (place / MANIFEST).write_text(json.dumps({**manifest, "recording": again.recording}))
    return place


def without_checksums(recording: Path) -> None:
    """Remove the checksums, as in recordings of early versions."""
    (recording / CHECKSUMS).unlink(missing_ok=True)
    manifest = json.loads((recording / MANIFEST).read_text())
    manifest.pop("checksums", None)
    (recording / MANIFEST).write_text(json.dumps(manifest))


def change_job(cell: Path, change: Callable[[Job], None]) -> None:
    """Change the job in fio's document in the folder of a cell."""
    change_documents(cell, lambda bodies: change(bodies[0]["jobs"][0]))


def change_documents(cell: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change fio's documents in the folder of a cell or soak."""
    path = cell / "fio.json"
    bodies = list(documents(path.read_text()))
    change(bodies)
    path.write_text("\n".join(json.dumps(document) for document in bodies))


def change_journal(recording: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the lines of the journal."""
    path = recording / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(canonical(line) + "\n" for line in lines))
