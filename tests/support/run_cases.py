"""What the kinds of cases about a run do with their input: evidence of fio, taints, seals and interruptions."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from drivelab.analysis.values.quick_look import SHOWN, Value
from drivelab.core.errors import CellFailed, UserError
from drivelab.criteria import taint
from drivelab.drives.arrays import of_raid_target
from drivelab.drives.described import target_words
from drivelab.drives.device_mapper import parse
from drivelab.drives.identified import Identity
from drivelab.drives.seal import Seal, judge
from drivelab.drives.sysfs import Wear
from drivelab.fio.result import read_result
from drivelab.plan.cell import Cell
from drivelab.quick import caveats
from drivelab.run.measure import lost_state

MIB = 1 << 20
DRIVE = Identity("S1", 10**12, "Fast 1", "eui.1")
EVIDENCE = Path(__file__).resolve().parents[1] / "unit/fio/data"


def _evidence(given: dict[str, Any], folder: Path) -> int:
    """The I/Os by a cell's evidence, if a `file` has another `text` (… is its own), is `cut` or has values `set`."""
    place = Path(shutil.copytree(EVIDENCE / given.get("of", "mix"), folder / "cell"))
    path = place / given.get("file", "fio.json")
    text = given.get("text", "…").replace("…", path.read_text())[: given.get("cut")]
    if "swap" in given:
        text = re.sub(*given["swap"], text)
    if "set" in given:
        document = json.loads(text)
        for name, value in given["set"].items():
            *parents, last = name.split(".")
            part = document["jobs"][0]
            for parent in parents:
                part = part[parent]
            part[last] = value
        text = json.dumps(document)
    path.write_text(text)
    cell = Cell("random", 65, 4096, threads=2, queue_depth=4, runtime_s=1.0)
    try:
        return read_result(place, replace(cell, **given.get("cell", {}))).ios
    except CellFailed as error:
        raise UserError(str(error)) from None


def _taint(given: dict[str, float], _: Path) -> list[Any]:
    """What taints a cell whose telemetry was quiet but for this, and whether it was throttled."""
    quiet = {
        "temperature_min_c": 40.0, "temperature_mean_c": 41.0, "temperature_max_c": 42.0, "temperature_limit_c": 70.0,
        "temperature_alarm": 0.0, "steal_pct": 0.1, "load_pct": 3.0, "thermal_1_transitions": 0.0, "thermal_1_s": 0.0,
    }  # fmt: skip
    return [taint.taints(quiet | given, taint.DEFAULT), taint.throttled(quiet | given)]


def _foreign(given: dict[str, Any], _: Path) -> list[Any]:
    """What others wrote, by the kernel's counts in bytes and those of the program itself."""
    found = taint.foreign_writes({taint.KERNEL: given["kernel"], **taint.own_writes(**given["own"])})
    return [taint.foreign_words(found), taint.taints(found, taint.DEFAULT)]


def _disks(written: dict[str, int], beside: int = 0) -> dict[str, Any]:
    """Counters of a subject on disks with these sectors written, and with `beside` on disk A outside of it."""
    return {"members": {
        serial: {"sectors_written": sectors, "sectors_discarded": 0, "sectors_discarded_beside": 0,
                 "sectors_written_beside": beside if serial == "A" else 0}
        for serial, sectors in written.items()
    }}  # fmt: skip


def _seal(given: dict[str, Any], _: Path) -> list[Any]:
    """The verdict on a seal, and its reason, where counters were `sealed` otherwise, or something differs now."""
    sealed = replace(Wear("boot", "7", 1000, 10), **_disks(given.get("disks", {})), **given.get("sealed", {}))
    seal = Seal("precondition", DRIVE, "abc", sealed, "2026-01-01T00:00:00.000+00:00")
    members = _disks(*given["disks_now"]) if "disks_now" in given else {}
    now, live = replace(DRIVE, **given.get("drive", {})), replace(sealed, **members, **given.get("live", {}))
    verdict = judge(seal, given.get("stage", "precondition"), now, given.get("plan", "abc"), live)
    return [verdict.intact, verdict.reason]


def _lost(given: dict[str, Any], _: Path) -> str | None:
    """Why a drive lost its state, by the MiB written at each second of each run of the sampler (`ended` or not)."""
    began = replace(Wear("boot", "7", 0, 0), **given.get("sealed", {}))
    first = {"event": "measure", "wear": asdict(began), "drive": DRIVE.to_mapping()}
    lines: list[dict[str, Any]] = []
    for run in given.get("samples", []):
        lines += [{"at_s": 99.0, "event": "begin"}]
        lines += [{"at_s": 100.0 + n, "sectors_written": mib * MIB // 512} for n, mib in enumerate(run)]
    lines += [{"at_s": 200.0, "event": "end"}] * given.get("ended", False)
    live = replace(began, **{"sectors_written": given.get("mib", 0) * MIB // 512, **given.get("live", {})})
    now = replace(DRIVE, **given.get("drive", {}))
    journal = [{name: first[name] for name in given.get("known", first)}]
    return lost_state("a/b/c", given.get("user", "a/b/c"), journal, lines, live, now,
                      virtual_clock=given.get("virtual_clock", False))  # fmt: skip


def _table(given: str, _: Path) -> str:
    return target_words(*parse(f"0 4096 {given}"))


def _status(given: str, _: Path) -> str | None:
    state = of_raid_target("dm-0", *parse(f"0 4096 {given}"))
    return None if state is None else state.words


def _look(given: dict[str, Any], _: Path) -> list[Any]:
    """What the values of a quick look by test say of what is between, for a class of drive."""
    tests = {shown.key: shown for shown in SHOWN}
    values = [Value(tests[key], value, given.get("half_width_pct", 1.0), (), cpu_share=given.get("cpu_share", 0.0))
              for key, value in given.get("values", {"random_read_qd32_iops": 1e5}).items()]  # fmt: skip
    return list(caveats.of_values(values, given["class"]))


OF_RUNS: dict[str, Callable[[Any, Path], Any]] = {
    "evidence of fio": _evidence, "telemetry of a cell": _taint, "writes of others": _foreign, "quick look": _look,
    "seal": _seal, "interrupted measurement": _lost, "table of a mapping": _table, "status of a mapping": _status,
}  # fmt: skip
