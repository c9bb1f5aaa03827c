"""One replay outside of a study, without conditioning: a trace on a drive of the sheet, a loop device or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.drives.target import Target
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay import native, once
from drivelab.replay.native import EngineOptions
from drivelab.replay.outcome import OUTCOME_FILE
from drivelab.replay.prefill import check_prefill, prefill_options, prefill_schedule
from drivelab.replay.prepare import Prepared, prepare
from drivelab.run.replays.replay_folder import PLAN, folder_of
from drivelab.run.replays.replay_targets import free, opened_target
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.trace_catalogue import sha256_of


def replay(
    trace: Path,
    target: str,
    output: Path,
    choice: ReplayChoice,
    options: EngineOptions,
    *,
    sheet: Path,
    prefill: bool = False,
    destroy: bool = False,
) -> dict[str, Any]:
    """Replay a trace once, write a row per request to `output`, and return the report.

    The report is that of drivelab.replay.evaluation.replay_report with `trace`, `target` and `failed_requests`. During
    the replay its files lie next to `output` in a folder `.NAME.replay`. Ctrl-C ends the replay normally, as a partial
    replay.

    Raises UserError, before writing to the target, when it may not be used, the trace does not fit, or the engine
    cannot start. A replay that ended early is not an error: see `partial`.
    """
    if (reason := native.possible()) is not None:
        raise UserError(f"the replay engine cannot run here: {reason}; fix that")
    refuse_source(output, [trace, Path(target)])
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with opened_target(target, sheet, destroy) as opened, folder_of(output) as folder:
        prepared = prepare(trace, folder / PLAN, choice, opened.capacity_bytes, opened.logical_block_bytes)
        try:
            report = _run(opened, prepared, folder, options, prefill=prefill)
        except BaseException:
            if (folder / OUTCOME_FILE).exists():
                _keep(folder, output)
                print(f"drivelab: the evaluation did not finish; the requests are in {output}", file=sys.stderr)
            raise
        _keep(folder, output)
    return {
        **_on_target(report, opened),
        "trace": {"name": trace.stem, "path": str(trace), "sha256": sha256_of(trace)},
    }


def _keep(folder: Path, output: Path) -> None:
    with writable(output):
        (folder / OUTCOME_FILE).replace(output)


def _run(target: Target, prepared: Prepared, folder: Path, options: EngineOptions, *, prefill: bool) -> dict[str, Any]:
    """Replay and return the report; raises UserError when the engine cannot begin."""

    def free_target() -> None:
        free(target)

    try:
        if prefill:
            _prefill(target, prepared, folder, prefill_options(options), free_target)
        with suppress(KeyboardInterrupt):  # evaluate the completed part
            once.run(target, prepared, folder, options, on_hang=free_target)
        if not once.begun(folder):
            raise KeyboardInterrupt
        return once.evaluate(prepared, folder)
    except CellFailed as failure:
        raise UserError(f"replay on {target.label}: {failure}") from None


def _on_target(report: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Return a report with facts of its target."""
    virtual = target.approved is not None and target.approved.virtual is not None
    return {
        **report,
        "marks": [*(["virtual: the drive is a model"] if virtual else []), *report["marks"]],
        "target": {
            "label": target.label,
            "kind": target.kind,
            "capacity_bytes": target.capacity_bytes,
            "logical_block_bytes": target.logical_block_bytes,
        },
        "failed_requests": sum(counts["requests"] for counts in report["failed"].values()),
    }


def _prefill(
    target: Target, prepared: Prepared, folder: Path, options: EngineOptions, on_hang: Callable[[], None]
) -> None:
    """Write the blocks that the trace reads, in a folder beside the replay's results."""
    directory = folder / "prefill"
    directory.mkdir()
    schedule = directory / "prefill.schedule"
    if not prefill_schedule(prepared.schedule, schedule):
        return
    native.run_engine(target.path, target.identity, schedule, directory, options, on_hang=on_hang)
    check_prefill(directory)
