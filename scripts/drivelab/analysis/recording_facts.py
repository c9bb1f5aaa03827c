"""Facts that decide whether recordings count, and folders that do not belong to a study."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.exclusions import WHOLE
from drivelab.collect.inventory import UNKNOWN
from drivelab.collect.soundness_of_cells import name_of
from drivelab.core.errors import UserError
from drivelab.criteria.soundness import FOREIGN
from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST, UNFINISHED, VERSIONS, read_journal

FACT_COLUMNS = ("recording", "drive", "measurement", "finished", *VERSIONS, "digests", "cells", "journalled")
_OF_HOST = ("fio", "kernel")
"""VERSIONS from host.json; the others come from identity.json."""


def recording_facts(recordings: Sequence[Path]) -> pd.DataFrame:
    """Return a row with FACT_COLUMNS for each recording, for `exclusions_table`."""
    return pd.DataFrame(map(_facts, recordings), columns=list(FACT_COLUMNS))


def strangers(
    folders: Sequence[Path], drives: Collection[str], measurements: Collection[str]
) -> Iterator[dict[str, str]]:
    """Yield rows of the table `exclusions` for folders below recordings/ that belong to no plan of the study.

    `drives` and `measurements` are those of the study. Recordings of them by an earlier plan are not strangers, and
    neither are unfinished measurements.
    """
    for folder in folders:
        if UNFINISHED.search(folder.name) or not (folder / "plan.json").exists():
            continue
        name = name_of(folder)
        drive, measurement = folder.parts[-3:-1]
        row = {"recording": name, "drive": drive, "measurement": measurement, "place": WHOLE, "fault": FOREIGN}
        try:
            plan = Plan.read(folder / "plan.json")
        except UserError as error:
            yield {**row, "words": str(error)}
            continue
        if plan.recording != name:
            yield {**row, "words": f"it is the recording {plan.recording} under another name"}
        elif plan.drive not in drives or plan.measurement not in measurements:
            kind = "drive" if plan.drive not in drives else "measurement"
            stranger = plan.drive if kind == "drive" else plan.measurement
            yield {**row, "words": f"its {kind} '{stranger}' is not in the study"}


def _facts(recording: Path) -> dict[str, Any]:
    plan, journal = Plan.read(recording / "plan.json"), list(read_journal(recording))
    if not journal:
        raise UserError(
            f"{recording}: its journal is empty; restore it from a copy, or delete the folder to measure again"
        )
    host, identity = _read(recording / "host.json"), _read(recording / "identity.json")
    return {
        "recording": plan.recording,
        "drive": plan.drive,
        "measurement": plan.measurement,
        "finished": journal[-1]["at"],
        **{name: _text((host if name in _OF_HOST else identity).get(name)) for name in VERSIONS},
        "digests": tuple(_digests(recording, journal, plan)),
        "cells": _read(recording / MANIFEST).get("cells"),
        "journalled": sum(line["event"] == "cell" for line in journal),
    }


def _text(value: object) -> str:
    return UNKNOWN if value in (None, "") else str(value)


def _digests(recording: Path, journal: list[dict[str, Any]], plan: Plan) -> Iterator[str]:
    """Yield digests that are unique to a recording: of its event times and, in real time, of fio's output.

    On the virtual clock nothing varies, so fio's output may repeat.
    """
    yield hashlib.sha256(json.dumps([(line["event"], line["at"]) for line in journal]).encode()).hexdigest()
    outputs = [recording / line["directory"] / "fio.json" for line in journal if line["event"] in ("cell", "soak")]
    if outputs and plan.clock == "wall":
        digest = hashlib.sha256()
        for path in outputs:
            digest.update(path.read_bytes() if path.exists() else b"")
        yield digest.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
