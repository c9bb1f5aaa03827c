"""One replay outside of a study: of a trace on a drive of the sheet, a loop device or a file, as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from drivelab.config.drives_sheet import SheetRow, load_sheet
from drivelab.config.yaml_file import load_yaml
from drivelab.drives import guard, target
from drivelab.drives.target import Target
from drivelab.errors import UserError
from drivelab.fio.document import CellFailed
from drivelab.replay import native, once
from drivelab.replay.choice import ReplayChoice
from drivelab.replay.native import EngineOptions
from drivelab.replay.once import Manner
from drivelab.replay.outcome import OUTCOME_FILE
from drivelab.replay.prefill import QUEUE_DEPTH, check_prefill, prefill_schedule
from drivelab.replay.prepare import Prepared, prepare
from drivelab.stages.planning import VIRTUAL_DRIVES, model_among
from drivelab.stages.replay_folder import PLAN, folder_of
from drivelab.trace.catalogue import sha256_of
from drivelab.trace.outputs import refuse_source, writable
from drivelab.virtual import manage


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
) -> dict[str, Any]:
    """Replay a trace once on the target `name` and write a row for each request to `output`; returns the report.

    The report is that of drivelab.replay.report with `trace`, `target` and `failed_requests`. Meanwhile the files of
    the replay lie beside `output` in a folder `.NAME.replay`. An interruption ends the replay in order: it is partial.

    Raises UserError, before anything is written to the target, when it may not be used or the trace does not fit, and
    when the engine could not begin. A replay that ended early is no error: see `partial`.
    """
    if (manner.engine == "native" or prefill) and (reason := native.possible()) is not None:
        raise UserError(f"the native engine cannot run here: {reason}; use --engine fio, or mend that")
    refuse_source(output, [trace, Path(name)])
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with _opened(name, sheet, destroy) as where, folder_of(output) as folder:
        prepared = prepare(trace, folder / PLAN, choice, where.capacity_bytes, where.logical_block_bytes)
        free = partial(_free, where)
        try:
            if prefill:
                _prefill(where, prepared, folder, manner.options, free)
            with suppress(KeyboardInterrupt):  # what was done until then is evaluated
                once.run(where, prepared, folder, manner, on_hang=free)
            if manner.engine == "native" and not once.begun(folder):
                raise KeyboardInterrupt
            report = once.evaluate(prepared, folder)
        except CellFailed as failure:
            raise UserError(f"replay on {where.label}: {failure}") from None
        with writable(output):
            (folder / OUTCOME_FILE).replace(output)
    virtual = where.approved is not None and where.approved.virtual is not None
    return {
        **report,
        "marks": [*(["virtual: the drive is a model"] if virtual else []), *report["marks"]],
        "trace": {"name": trace.stem, "path": str(trace), "sha256": sha256_of(trace)},
        "target": {"label": where.label, "kind": where.kind, "capacity_bytes": where.capacity_bytes,
                   "logical_block_bytes": where.logical_block_bytes},
        "failed_requests": sum(one["requests"] for one in report["failed"].values()),
    }  # fmt: skip


def _prefill(where: Target, prepared: Prepared, folder: Path, wanted: EngineOptions, free: Callable[[], None]) -> None:
    """In a folder of its own: its results are not the replay's."""
    directory = folder / "prefill"
    directory.mkdir()
    schedule = directory / "prefill.schedule"
    if not prefill_schedule(prepared.schedule, schedule):
        return
    options = replace(wanted, depth_limit=QUEUE_DEPTH, go_on=False)
    native.run_engine(where.path, where.identity, schedule, directory, options, on_hang=free)
    check_prefill(directory)


@contextmanager
def _opened(name: str, sheet: Path, destroy: bool) -> Iterator[Target]:
    """The target, approved and locked."""
    if "/" in name or Path(name).exists():
        with target.named(Path(name), destroy=destroy) as where:
            yield where
        return
    rows = load_sheet(sheet)
    if name not in rows:
        raise UserError(
            f"target '{name}': is neither a drive of {sheet}, which has: {', '.join(rows) or 'none'}, nor a path; "
            "enter the drive there, or name a loop device or a file by its path"
        )
    with _device(rows[name]) as device:
        if rows[name].virtual is None and not destroy:
            raise UserError(
                f"drive '{name}' ({rows[name].serial}): a replay may destroy what it holds; agree to that with --yes. "
                "Nothing was written."
            )
        with guard.held(rows[name], device) as (held, _):
            yield target.of_drive(held, name)


@contextmanager
def _device(row: SheetRow) -> Iterator[str]:
    """Path of a row's device; a virtual drive that does not run is started for the time of the replay."""
    if row.virtual is None:
        yield row.device
        return
    model = model_among(load_yaml(VIRTUAL_DRIVES), row.virtual, row.source)
    running = any(one.name == row.virtual and one.alive for one in manage.status())
    drive = manage.start(row.virtual, model)
    try:
        yield drive.device
    finally:
        if not running:
            manage.stop(row.virtual)


def _free(where: Target) -> None:
    """Free an engine that waits in the kernel for a virtual drive that no longer answers."""
    if where.approved is not None and where.approved.virtual is not None:
        manage.stop(where.approved.virtual, force=True)
