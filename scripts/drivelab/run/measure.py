"""The measuring process: makes one recording, from the first cell to the manifest, and resumes it if interrupted."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import drivelab
from drivelab.core.errors import CellFailed, UserError
from drivelab.core.terminal import say
from drivelab.core.units import format_amount
from drivelab.drives.identified import Identity
from drivelab.drives.seal import counters_lost
from drivelab.drives.sysfs import SECTOR_BYTES, Wear, read_text
from drivelab.fio.job_run import fio_version
from drivelab.host.hardware import hardware
from drivelab.host.settings import snapshot
from drivelab.plan.plan import Plan
from drivelab.recording.writer import VERSIONS, Recording
from drivelab.run.condition import check_seal, note_neighbours, note_scenario, prepare, require_scenario
from drivelab.run.device import Device, open_device
from drivelab.run.fio_cell import Bench
from drivelab.run.idle import run_idle
from drivelab.run.loop import Turns, run_loop
from drivelab.run.places import place
from drivelab.run.progress import Progress
from drivelab.run.schedules import Schedules
from drivelab.run.soak import run_soak
from drivelab.run.together import NOT_RESUMED, Barrier, start_together
from drivelab.telemetry.sampler import read_lines


def describe_host(proc_root: Path = Path("/proc")) -> dict[str, Any]:
    """Return the columns of the table `hosts` that need no other program."""
    cpu = [line.partition(":")[2].strip() for line in (read_text(proc_root / "cpuinfo") or "").splitlines()
           if line.startswith("model name")]  # fmt: skip
    memory_kib = next(
        (int(line.split()[1]) for line in (read_text(proc_root / "meminfo") or "").splitlines()
         if line.startswith("MemTotal")), 0)  # fmt: skip
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": memory_kib * 1024,
        "os": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
        if Path("/etc/os-release").exists()
        else "unknown",
        "python": platform.python_version(),
        **hardware(),
    }


BLIND_S = 5.0
"""Longest time between the last sample and the last write of a killed process: samples come every second."""
_IN_FLIGHT_BYTES = 2**20
"""Writes in flight when the measurement ended normally; the drive counts them when they complete."""


def lost_state(
    recording: str, last_user: str | None, journal: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]],
    live: Wear, drive: Identity, *, virtual_clock: bool = False,
) -> str | None:  # fmt: skip
    """Return why the drive's state is not the one that an interrupted measurement left; None if it may resume.

    `lines` are the recording's telemetry. It must be the same drive, and no other measurement may have used it. It must
    have stayed attached and the host running, or it must have its own write counter. The interrupted cell wrote at most
    BLIND_S at the highest observed rate after the last sample; any more was written by others. On the virtual clock
    nothing else can write.
    """
    if last_user != recording:
        return f"the drive was used for {last_user or 'something unknown'} in the meantime"
    first: Mapping[str, Any] = next((line for line in reversed(journal) if line["event"] == "measure"), {})
    if not {"wear", "drive"} <= first.keys():
        return "the drive's identity and counters were not recorded when the measurement began"
    if changes := Identity.from_mapping(first["drive"]).changes(drive):
        return f"the drive is another one: {'; '.join(changes)}"
    before = Wear(**first["wear"])
    lost = counters_lost(before, live)
    written_bytes = _written_bytes(before, live, lost is not None)
    if written_bytes is None:
        return f"{lost} in the meantime, and the drive has no write counter"
    if written_bytes < 0:
        return "the drive's write counter decreased"
    if virtual_clock:
        return None
    foreign = foreign_bytes(lines, before.sectors_written, before.sectors_written + written_bytes // SECTOR_BYTES)
    return f"others wrote about {format_amount(foreign)} in the meantime" if foreign else None


def other_versions(part: Path, now: Mapping[str, Any]) -> str | None:
    """Return the first version that changed since the unfinished recording in `part` began; None if none did.

    `now` has the fields of host.json and identity.json. One recording never mixes cells of several versions.
    """
    first: dict[str, Any] = {}
    for name in ("host.json", "identity.json"):
        if (part / name).exists():
            first |= json.loads((part / name).read_text(encoding="utf-8"))
    changed = (
        f"{title} was {first[name]} and is now {now[name]}"
        for name, title in VERSIONS.items()
        if name in first and name in now and first[name] != now[name]
    )
    return next(changed, None)


def _written_bytes(sealed: Wear, live: Wear, lost: bool) -> int | None:
    """Return the bytes written since the seal: by the kernel's counter, or if that was reset, by the drive's counter.

    None if the drive has no counter.
    """
    if not lost:
        return SECTOR_BYTES * (live.sectors_written - sealed.sectors_written)
    if sealed.lifetime_bytes_written is None or live.lifetime_bytes_written is None:
        return None
    return live.lifetime_bytes_written - sealed.lifetime_bytes_written


def foreign_bytes(lines: Iterable[Mapping[str, Any]], first_sectors: int, sectors: int) -> int:
    """Return the bytes written since the last sample that the measurement cannot have written itself.

    `first_sectors` is the counter of written sectors when the measurement last started or resumed, `sectors` the
    counter now. The rate is the highest since the recording began. Without a rate, no bytes count as the measurement's.
    """
    runs: list[list[tuple[float, int]]] = [[]]
    ended = False
    for line in lines:
        if line.get("event") == "begin":
            runs.append([])
        if "sectors_written" in line:
            runs[-1].append((line["at_s"], int(line["sectors_written"])))
        ended = line.get("event") == "end"
    since = SECTOR_BYTES * (sectors - (runs[-1][-1][1] if runs[-1] else first_sectors))
    fastest = max((rate for run in runs for rate in _rates(run)), default=0.0)
    own = _IN_FLIGHT_BYTES + (0 if ended else int(BLIND_S * fastest * SECTOR_BYTES))
    return since if since > own else 0


def _rates(samples: Sequence[tuple[float, int]]) -> Iterator[float]:
    """Yield sectors per second over at least half a second, because samples at cell edges lie close together."""
    for number, (start_s, start) in enumerate(samples):
        later = ((at_s, value) for at_s, value in samples[number + 1 :] if at_s - start_s >= 0.5)
        if (end := next(later, None)) is not None:
            yield (end[1] - start) / (end[0] - start_s)


def _run_step(kind: str, bench: Bench, progress: Progress, number: int, fields: Mapping[str, Any]) -> Turns:
    """Run a step; yield where another measurement may run: after each cell of a loop, and at the end of the step."""
    if kind == "loop":
        yield from run_loop(bench, progress, number, fields)
        return
    if kind == "replay":
        from drivelab.run.replays.replay import run_replay as run  # imports pandas, which loops and soaks do not need
    elif kind == "application":
        from drivelab.run.application import run_application as run
    elif kind == "load":
        from drivelab.run.load import run_load as run  # imports scipy, which loops and soaks do not need
    else:
        run = {"soak": run_soak, "idle": run_idle}[kind]
    run(bench, progress, number, fields)
    yield


def measure(plan: Plan, seal_in: Path, barrier: Barrier | None = None) -> None:
    """Make the recording of a plan, unless it exists.

    A drive in the sealed state is measured at once; otherwise it is purged and preconditioned first. An interrupted
    measurement resumes, with the gap marked. Raises UserError when a cell fails; finished cells are kept, and the next
    call resumes.

    With a `barrier` each step starts together with the measurements of other drives. Such a measurement never resumes.
    """
    recording = Recording(plan)
    if recording.complete:
        recording.write_manifest()
        return
    if (barrier is None) == ("simultaneous" in plan.subject):
        raise UserError(
            f"{plan.recording} is measured at the same time as other drives; use 'drivelab measure-together'"
            if barrier is None
            else f"{plan.recording} is measured alone; use 'drivelab measure'"
        )
    if recording.measured and barrier is None:
        recording.finish()
        return
    with Progress(plan, "measure") as progress, place(plan, progress, last=True), open_device(plan) as device:
        with bench_of(plan, device, recording, seal_in, progress, alone=barrier is None) as bench:
            bench.barrier = barrier
            for _ in turns(bench, progress, barrier):
                pass
        if barrier is not None:
            start_together(barrier, recording, len(plan.subject["measure"]))
        recording.finish()


@contextmanager
def bench_of(
    plan: Plan, device: Device, recording: Recording, seal_in: Path | None, progress: Progress, *, alone: bool
) -> Iterator[Bench]:
    """Open the recording of a plan, bring the drive into its initial state, and yield a bench with running telemetry.

    Without `seal_in` no other process has prepared the drive. Raises UserError if the host's settings are not those
    that the protocol requires, and at the end if anything beside a partition has changed.
    """
    scenario = require_scenario(plan, device)
    recording.open()
    note_scenario(recording, "measure", scenario)
    host = {**describe_host(), "scenario": plan.subject["scenario"],
            "fio": fio_version() if plan.clock == "wall" else "virtual clock",
            "engine": device.engine, "drivelab": drivelab.__version__,
            **({"placement": device.placement} if device.placement is not None else {}),
            **({"note": plan.context["host_note"]} if "host_note" in plan.context else {})}  # fmt: skip
    _ready(plan, device, recording, seal_in, host, progress, alone=alone)
    recording.write(
        "identity.json",
        {
            "drive": plan.drive,
            "serial": device.identified.serial,
            "device": plan.context["device"],
            **device.identity(),
        },
    )
    recording.write("host.json", host)
    if plan.clock == "wall":
        recording.write("settings.json", snapshot(device.settings_of, plan.subject["scenario"]))
    recording.append("measure", wear=asdict(device.wear()), drive=device.identified.to_mapping())
    _note_array(recording, device)
    with Schedules(plan, device, recording) as schedules:
        bench = Bench(plan, device, recording, schedules)
        with bench.telemetry, device.telling(recording.part):
            yield bench
    _note_array(recording, device)
    note_neighbours(recording, "measure", device)


def _note_array(recording: Recording, device: Device) -> None:
    """Append the state of an array to the journal: it may change during the measurement."""
    state = device.array_state()
    if state is not None:
        recording.append("array", **asdict(state))


def _ready(
    plan: Plan, device: Device, recording: Recording, seal_in: Path | None, host: Mapping[str, Any], progress: Progress,
    *, alone: bool,
) -> None:  # fmt: skip
    """Resume, or ensure that the drive is in its initial state."""
    journal = recording.journal()
    if any(line["event"] == "measure" for line in journal):
        samples = read_lines(recording.part)
        if device.lasts:
            reason = NOT_RESUMED if not alone else lost_state(
                plan.recording, device.last_user, journal, samples, device.wear(), device.identified,
                virtual_clock=plan.clock == "virtual",
            )  # fmt: skip
        else:
            reason = "its file ended with the interrupted process"
        reason = reason or other_versions(recording.part, {**host, **device.identity()})
        if reason is None:
            device.take_over()
            recording.append(
                "resumed" if device.undoes else "gap", reason="the measurement was interrupted and resumed"
            )
            say(f"drive '{plan.drive}': resuming {plan.measurement} where it was interrupted")
            return
        say(f"drive '{plan.drive}': cannot resume {plan.measurement}: {reason}; restarting")
        recording.set_aside(reason)
        recording.open()
        prepare(plan, device, recording, progress)
    elif seal_in is None or not check_seal(plan, device, recording, seal_in, "precondition"):
        prepare(plan, device, recording, progress)
    device.take_over()


def turns(bench: Bench, progress: Progress, barrier: Barrier | None = None) -> Turns:
    """Take the steps of a plan; see `run_loop`. Raises UserError when a cell fails."""
    plan, recording = bench.plan, bench.recording
    for number, step in enumerate(plan.subject["measure"]):
        ((kind, fields),) = step.items()
        if barrier is not None:
            start_together(barrier, recording, number)
        try:
            yield from _run_step(kind, bench, progress, number, fields)
        except CellFailed as failure:
            recording.append("failed", step=number, reason=str(failure))
            action = "to resume" if barrier is None and bench.device.lasts else "to restart"
            raise UserError(
                f"drive '{plan.drive}', {plan.measurement}: {failure}. Finished cells are kept in "
                f"{recording.part}; fix the cause and run again {action}."
            ) from None
