"""One replay outside of a study: a trace on a drive of the sheet, a loop device or a file, without conditioning."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.drives import guard, target
from drivelab.drives.target import Target
from drivelab.plan.drive_sheet import SheetRow, load_sheet
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.plan.subject_kinds import KINDS
from drivelab.plan.yaml_file import load_yaml
from drivelab.recording.writer import write_json
from drivelab.replay import native, once
from drivelab.replay.data_check import read_back
from drivelab.replay.data_requests import DATA
from drivelab.replay.engine_records import open_results, open_schedule
from drivelab.replay.native import EngineOptions
from drivelab.replay.once import Manner
from drivelab.replay.outcome import OUTCOME_FILE, write_outcome
from drivelab.replay.prefill import QUEUE_DEPTH, check_prefill, prefill_schedule
from drivelab.replay.prepare import Prepared, prepare
from drivelab.replay.verification import new_data
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.trace_catalogue import sha256_of
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among

_DATA_FILE = "data.json"
"""Seed and block size of data to be checked, for a replay that is killed."""
PLAN = "trace"
"""Stem of the schedule and of the planned requests."""
_LOCK = "replay.lock"
_MARK = b"work folder of drivelab replay; it is emptied and removed\n"
"""Content of the lock file. A file of that name with other content is not drivelab's."""
_REMEDY = "It was not changed. Move it, or give -o another name."


@contextmanager
def folder_of(output: Path) -> Iterator[Path]:
    """Make an empty work folder `.NAME.replay` beside `output`, hold it for the block, then remove it.

    The completed part of an earlier replay that was killed is kept as `STEM.interrupted-N.parquet`. Only a folder with
    drivelab's mark is emptied, through its descriptor, and no link is followed.

    Raises UserError when another replay holds the folder, and when something else has its name.
    """
    folder = output.with_name(f".{output.name}.replay")
    with writable(output):
        parent = os.open(output.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            held = _open(parent, folder)
        except BaseException:
            os.close(parent)
            raise
    try:
        lock = _lock(held, folder, output)
        try:
            _save(folder, output)
            _empty(held)
            try:
                yield folder
            finally:
                _empty(held)
                with suppress(OSError):  # the folder was moved, or has new content
                    os.unlink(_LOCK, dir_fd=held)  # last: without its mark, drivelab would refuse the folder
                    os.rmdir(folder.name, dir_fd=parent)
        finally:
            os.close(lock)
    finally:
        os.close(held)
        os.close(parent)


def _open(parent: int, folder: Path) -> int:
    """Open the folder, or make it; raises UserError for a link, a file or another user's folder."""
    with suppress(FileExistsError):
        os.mkdir(folder.name, 0o700, dir_fd=parent)
    try:
        held = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:  # also for a link
        raise UserError(f"{folder}: is a link or a file, where drivelab needs a work folder. {_REMEDY}") from None
    if os.fstat(held).st_uid != os.geteuid():
        os.close(held)
        raise UserError(f"{folder}: belongs to another user. {_REMEDY}")
    return held


def _lock(held: int, folder: Path, output: Path) -> int:
    """Open, mark and lock the folder's lock file; raises UserError as in `folder_of`."""
    foreign = UserError(f"{folder}: is not a work folder of drivelab replay. {_REMEDY}")
    empty = set(os.listdir(held)) <= {_LOCK}
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_CREAT if empty else 0)
    try:
        lock = os.open(_LOCK, flags, 0o600, dir_fd=held)
    except OSError:  # missing among other files, or a link or a folder
        raise foreign from None
    try:
        status = os.fstat(lock)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise foreign
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{output}: another replay is writing it; wait for it, or give -o another name") from None
        content = os.pread(lock, len(_MARK) + 1, 0)
        if empty and _MARK.startswith(content):  # new, or its process was killed during the write
            os.pwrite(lock, _MARK, 0)
        elif content != _MARK:
            raise foreign
    except BaseException:
        os.close(lock)
        raise
    return lock


def _empty(held: int) -> None:
    """Remove everything but the lock file; a link is removed, not followed."""
    for name in os.listdir(held):
        if name == _LOCK:
            continue
        if stat.S_ISDIR(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=held)
        else:
            os.unlink(name, dir_fd=held)


def _save(folder: Path, output: Path) -> None:
    schedule, planned = folder / f"{PLAN}.schedule", folder / f"{PLAN}.planned.parquet"
    results = folder / native.RESULTS
    if not (schedule.exists() and planned.exists() and results.exists()):
        return
    try:
        if open_results(results).header["schedule_checksum"] != open_schedule(schedule).header["checksum"]:
            return
        if native.engine_report(folder)["state"] == "prepared":
            return
        kept = _free_name(output)
        data = folder / _DATA_FILE
        about = {DATA: json.loads(data.read_text(encoding="utf-8"))} if data.exists() else {}
        write_outcome(planned, results, kept, {"engine": "native", **about})
    except UserError as error:
        print(f"an earlier replay was interrupted, but its results are unusable: {error}")
    else:
        print(f"an earlier replay was interrupted; its completed part is in {kept}")


def _free_name(output: Path) -> Path:
    number = 1
    while os.path.lexists(kept := output.with_name(f"{output.stem}.interrupted-{number}{output.suffix}")):
        number += 1
    return kept


def replay(
    trace: Path,
    name: str,
    output: Path,
    choice: ReplayChoice,
    manner: Manner,
    *,
    sheet: Path,
    prefill: bool = False,
    destroy: bool = False,
    verify: bool = False,
) -> dict[str, Any]:
    """Replay a trace once on the target `name`, write a row per request to `output`, and return the report.

    The report is that of drivelab.replay.evaluation.replay_report with `trace`, `target` and `failed_requests`. During
    the replay its files lie next to `output` in a folder `.NAME.replay`. Ctrl-C ends the replay normally, as a partial
    replay. `verify`: judge what reads return, and read back what was written; see drivelab.replay.verification.

    Raises UserError, before writing to the target, when the target may not be used, the trace does not fit, or the
    engine cannot start. A replay that ended early is not an error: see `partial`.
    """
    if (manner.engine == "native" or prefill) and (reason := native.possible()) is not None:
        raise UserError(f"the native engine cannot run here: {reason}; use --engine fio, or fix that")
    if verify and manner.engine != "native":
        raise UserError("fio's replay writes no data that can be checked; use the native engine, or remove --verify")
    refuse_source(output, [trace, Path(name)])
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with _opened(name, sheet, destroy) as opened, folder_of(output) as folder:
        prepared = prepare(trace, folder / PLAN, choice, opened.capacity_bytes, opened.logical_block_bytes)
        free = partial(_free, opened)
        data = new_data(opened.logical_block_bytes) if verify else None
        if data:
            manner = replace(manner, options=replace(manner.options, seed=data["seed"], exact_data=True))
            write_json(folder / _DATA_FILE, data)
        try:
            if prefill:
                _prefill(opened, prepared, folder, manner.options, free)
            with suppress(KeyboardInterrupt):  # evaluate the completed part
                once.run(opened, prepared, folder, manner, on_hang=free)
            if manner.engine == "native" and not once.begun(folder):
                raise KeyboardInterrupt
            report = once.evaluate(prepared, folder, data, opened.own_path)
        except CellFailed as failure:
            raise UserError(f"replay on {opened.label}: {failure}") from None
        with writable(output):
            (folder / OUTCOME_FILE).replace(output)
    virtual = opened.approved is not None and opened.approved.virtual is not None
    return {
        **report,
        "marks": [*(["virtual: the drive is a model"] if virtual else []), *report["marks"]],
        "trace": {"name": trace.stem, "path": str(trace), "sha256": sha256_of(trace)},
        "target": {"label": opened.label, "kind": opened.kind, "capacity_bytes": opened.capacity_bytes,
                   "logical_block_bytes": opened.logical_block_bytes},
        "failed_requests": sum(counts["requests"] for counts in report["failed"].values()),
    }  # fmt: skip


def check(outcome: Path, name: str, *, sheet: Path, power_cut: bool) -> dict[str, Any]:
    """Check the data that an earlier replay wrote to the target `name`, a drive of the sheet or a path."""
    if "/" in name or Path(name).exists():
        return read_back(name, outcome, power_cut=power_cut)
    with _device(_row(name, sheet)) as device:
        return read_back(device, outcome, power_cut=power_cut)


def _prefill(opened: Target, prepared: Prepared, folder: Path, wanted: EngineOptions, free: Callable[[], None]) -> None:
    """Write the blocks that the trace reads, in a separate folder: these are not results of the replay."""
    directory = folder / "prefill"
    directory.mkdir()
    schedule = directory / "prefill.schedule"
    if not prefill_schedule(prepared.schedule, schedule):
        return
    options = replace(wanted, depth_limit=QUEUE_DEPTH, go_on=False, seed=None, exact_data=False)
    native.run_engine(opened.path, opened.identity, schedule, directory, options, on_hang=free)
    check_prefill(directory)


@contextmanager
def _opened(name: str, sheet: Path, destroy: bool) -> Iterator[Target]:
    """Open the target, approved and locked."""
    if "/" in name or Path(name).exists():
        with target.named(Path(name), destroy=destroy) as opened:
            yield opened
        return
    row = _row(name, sheet)
    if not KINDS[row.kind].destroyed:
        raise UserError(f"target '{name}': a replay needs a drive, not the kind '{row.kind}'. Nothing was written.")
    with _device(row) as device:
        if row.virtual is None and not destroy:
            raise UserError(
                f"drive '{name}' ({row.serial}): a replay may destroy its data; confirm with --yes. "
                "Nothing was written."
            )
        with guard.held(row, device) as (held, _):
            yield target.of_drive(held, name)


def _row(name: str, sheet: Path) -> SheetRow:
    rows = load_sheet(sheet)
    if name not in rows:
        raise UserError(
            f"target '{name}' is neither a path nor a drive of {sheet}, which has: {', '.join(rows) or 'none'}; "
            "enter the drive there, or give the path of a loop device or a file"
        )
    return rows[name]


@contextmanager
def _device(row: SheetRow) -> Iterator[str]:
    """Return the path of a row's device; start a stopped virtual drive for the time of the replay."""
    if row.virtual is None:
        yield row.device
        return
    model = model_among(load_yaml(VIRTUAL_DRIVES), row.virtual, row.source)
    running = any(drive.name == row.virtual and drive.alive for drive in manage.status())
    started = manage.start(row.virtual, model)
    try:
        yield started.device
    finally:
        if not running:
            manage.stop(row.virtual)


def _free(opened: Target) -> None:
    """Stop a virtual drive that no longer answers, to free an engine that waits in the kernel."""
    if opened.approved is not None and opened.approved.virtual is not None:
        manage.stop(opened.approved.virtual, force=True)
