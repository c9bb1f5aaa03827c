"""Measure what the host gives at a cell's load on null targets, once per host and load.

It happens after the last cell of a measurement. So nothing comes between conditioning and measuring, the drive under
test is not used, and the host still has the settings of the cells.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.private import make_private, own_run_directory
from drivelab.criteria.host_limit import AT_MOST
from drivelab.fio.job import job_text
from drivelab.fio.job_run import run_fio
from drivelab.fio.null_target import (
    CEILINGS,
    ENGINES,
    TRIES,
    NullTarget,
    facts_of,
    key_of,
    load_of,
    null_block_device,
    null_targets,
)
from drivelab.fio.result import read_result
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan, canonical
from drivelab.recording.writer import Recording, now_iso, read_object, write_json
from drivelab.run.device import Device
from drivelab.run.progress import Progress

MOST_LOADS = 200
"""Loads of one measurement whose ceiling is measured; a trace may have more."""
UNDISTURBED = 0.9
"""Share of their CPUs that threads on a null target have if nothing else uses the CPUs (ours)."""
_SEED = 1
_OF_HOST = ("kernel", "cpu", "cores", "fio")
"""Fields of host.json on which a ceiling depends, besides the host's settings."""
Measured = list[dict[str, Any]]


def note_ceilings(plan: Plan, device: Device, recording: Recording, progress: Progress, *, alone: bool) -> None:
    """Write the ceilings of all loads of a measurement to its recording, unless no host took part.

    A virtual drive is a program on the host, so the question does not apply. Beside other measurements (not `alone`),
    only what is known already is written.
    """
    if plan.clock != "wall" or plan.virtual:
        return
    loads = loads_of(recording.journal())
    if not loads:
        return

    def say(number: int, load: Cell) -> None:
        progress.say(f"what the host gives at {load.label}", number / len(loads))

    host, settings = (json.loads((recording.part / name).read_text()) for name in ("host.json", "settings.json"))
    names = [device.name, *device.settings_of]
    recording.write(CEILINGS, ceilings(loads, device.engine, host, settings, besides=names, measure=alone, say=say))


def loads_of(journal: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return the distinct loads of the cells and soaks in a journal, in order."""
    cells = (Cell(**line["workload"]) for line in journal if line["event"] in ("cell", "soak"))
    loads = {key_of(load): load for cell in cells if (load := load_of(cell)) is not None}
    return list(loads.values())[:MOST_LOADS]


def ceilings(
    loads: Sequence[Cell],
    engine: str,
    host: Mapping[str, Any],
    settings: Iterable[Mapping[str, Any]],
    *,
    besides: Sequence[str] = (),
    measure: bool = True,
    say: Callable[[int, Cell], None] = lambda number, load: None,
) -> dict[str, Any]:
    """Return the content of CEILINGS: for each load, the results on null targets.

    Args:
        engine: fio's engine of the cells.
        host: fields of host.json.
        settings: rows of settings.json. Results of a host with other settings do not count.
        besides: kernel names of the devices under test.
        measure: whether to measure what is not known. If others are measured at the same time, it would disturb them.
        say: called before a load is measured.
    """
    states = [[row["name"], row["state"]] for row in settings if row["scope"] == "host"]
    conditions = {**{name: host.get(name) for name in _OF_HOST}, "engine": engine, "settings": _digest(states)}
    known_file = make_private(own_run_directory() / "host-ceilings") / f"{_digest(conditions)}.json"
    known: dict[str, Measured] = read_object(known_file)
    missing: list[str] = []
    may_measure = measure and engine in ENGINES
    best = null_block_device(besides)[0] if may_measure else None
    unknown = [load for load in loads if key_of(load) not in known or _lacks(known[key_of(load)], load, best)]
    if may_measure and unknown:
        entries, missing = measured_now(unknown, engine, besides=besides, say=say)
        new = {key_of(load): entry["measured"] for load, entry in zip(unknown, entries, strict=True)}
        write_json(known_file, known | {key: results for key, results in new.items() if _lasts(results)})
        known |= new
    measured = [{"load": load.to_mapping(), "measured": known.get(key_of(load), [])} for load in loads]
    return {"conditions": conditions, "loads": measured, "without": missing}


def _lacks(results: Measured, load: Cell, best: NullTarget | None) -> bool:
    """Return whether a null_blk device, made since the results, says more about the load."""
    if best is None or not (bounds := list(best.bounds(load))):
        return False
    return not any(result["target"] == best.name and result["bounds"] == bounds for result in results)


def _lasts(results: Measured) -> bool:
    """Return whether results hold for later measurements too: nothing failed, and nothing else used the CPUs."""
    return not any("failed" in result or "disturbed" in result for result in results)


def measured_now(
    loads: Sequence[Cell],
    engine: str,
    *,
    besides: Sequence[str] = (),
    say: Callable[[int, Cell], None] = lambda number, load: None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure loads; return the entries `loads` of CEILINGS, and why targets are missing. Arguments: see `ceilings`."""
    entries = []
    with null_targets(besides) as (targets, missing):
        for number, cell in enumerate(loads):
            if (load := load_of(cell)) is not None:
                say(number, load)
                entries.append({"load": load.to_mapping(), "measured": _measured(load, engine, targets)})
    return entries, missing


def _measured(load: Cell, engine: str, targets: Iterable[NullTarget]) -> Measured:
    results = []
    for target in targets:
        if target.bounds(load):
            facts = {**facts_of(target, load), "at": now_iso()}
            try:
                results.append(without_disturbed_bound({**facts, **_best(load, engine, target)}, load.threads))
            except (CellFailed, UserError, OSError) as error:
                results.append({**facts, "bounds": [], "failed": str(error)})
    return results


def _best(load: Cell, engine: str, target: NullTarget) -> dict[str, Any]:
    cell = target.load_for(load)
    job = job_text(cell, target.path, target.engine or engine, target.capacity_bytes, target.logical_block_bytes, _SEED)
    tries = []
    for _ in range(TRIES):
        with TemporaryDirectory(prefix="drivelab-ceiling-") as folder:
            run_fio(None, job, Path(folder), runtime_s=cell.runtime_s, readonly=target.readonly)
            result = read_result(Path(folder), cell)
            tries.append((result.iops, result.user_cpu_pct + result.system_cpu_pct))
    iops, threads_pct = max(tries)
    return {"iops": iops, "threads_pct": round(threads_pct, 1), "tries": [one for one, _ in tries], "job": job}


def without_disturbed_bound(result: dict[str, Any], threads: int, cpus: int | None = None) -> dict[str, Any]:
    """Remove AT_MOST from the bounds of a result whose threads did not have their CPUs for themselves.

    A null target never lets fio wait, so threads use all of their CPUs unless something else does. Threads beyond the
    number of CPUs share them.
    """
    cpus = len(os.sched_getaffinity(0)) if cpus is None else cpus
    expected_pct = 100 * min(1.0, cpus / threads)
    if AT_MOST not in result["bounds"] or result["threads_pct"] >= UNDISTURBED * expected_pct:
        return result
    words = f"fio's threads had {result['threads_pct']:.0f} % of a CPU each, not {expected_pct:.0f} %"
    return {**result, "bounds": [bound for bound in result["bounds"] if bound != AT_MOST], "disturbed": words}


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]
