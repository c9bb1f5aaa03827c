"""One replay outside of a study: a trace on a drive of the sheet, a loop device or a file, without conditioning."""

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
    """Replay a trace once on the target `name`, write a row per request to `output`, and return the report.

    The report is that of drivelab.replay.report with `trace`, `target` and `failed_requests`. During the replay its
    files lie next to `output` in a folder `.NAME.replay`. Ctrl-C ends the replay normally, as a partial replay.

    Raises UserError, before writing to the target, when the target may not be used, the trace does not fit, or the
    engine cannot start. A replay that ended early is not an error: see `partial`.
    """
    if (manner.engine == "native" or prefill) and (reason := native.possible()) is not None:
        raise UserError(f"the native engine cannot run here: {reason}; use --engine fio, or fix that")
    refuse_source(output, [trace, Path(name)])
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with _opened(name, sheet, destroy) as opened, folder_of(output) as folder:
        prepared = prepare(trace, folder / PLAN, choice, opened.capacity_bytes, opened.logical_block_bytes)
        free = partial(_free, opened)
        try:
            if prefill:
                _prefill(opened, prepared, folder, manner.options, free)
            with suppress(KeyboardInterrupt):  # evaluate the completed part
                once.run(opened, prepared, folder, manner, on_hang=free)
            if manner.engine == "native" and not once.begun(folder):
                raise KeyboardInterrupt
            report = once.evaluate(prepared, folder)
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


def _prefill(opened: Target, prepared: Prepared, folder: Path, wanted: EngineOptions, free: Callable[[], None]) -> None:
    """Write the blocks that the trace reads, in a separate folder: these are not results of the replay."""
    directory = folder / "prefill"
    directory.mkdir()
    schedule = directory / "prefill.schedule"
    if not prefill_schedule(prepared.schedule, schedule):
        return
    options = replace(wanted, depth_limit=QUEUE_DEPTH, go_on=False)
    native.run_engine(opened.path, opened.identity, schedule, directory, options, on_hang=free)
    check_prefill(directory)


@contextmanager
def _opened(name: str, sheet: Path, destroy: bool) -> Iterator[Target]:
    """Open the target, approved and locked."""
    if "/" in name or Path(name).exists():
        with target.named(Path(name), destroy=destroy) as opened:
            yield opened
        return
    rows = load_sheet(sheet)
    if name not in rows:
        raise UserError(
            f"target '{name}' is neither a path nor a drive of {sheet}, which has: {', '.join(rows) or 'none'}; "
            "enter the drive there, or give the path of a loop device or a file"
        )
    with _device(rows[name]) as device:
        if rows[name].virtual is None and not destroy:
            raise UserError(
                f"drive '{name}' ({rows[name].serial}): a replay may destroy its data; confirm with --yes. "
                "Nothing was written."
            )
        with guard.held(rows[name], device) as (held, _):
            yield target.of_drive(held, name)


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
