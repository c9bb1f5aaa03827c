"""One replay outside of a study, without conditioning: a trace on a drive of the sheet, a loop device or a file, or its
volumes each on one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
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
from drivelab.replay.prepare import Prepared, prepare_volumes
from drivelab.replay.volumes import Volumes
from drivelab.run.replays.replay_folder import PLAN, folder_of
from drivelab.run.replays.replay_targets import (
    free,
    opened_targets,
    refuse_volumes,
)
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.trace_catalogue import sha256_of


def replay(
    trace: Path,
    targets: Mapping[str, str],
    output: Path,
    choice: ReplayChoice,
    options: EngineOptions,
    *,
    sheet: Path,
    skipped: Sequence[str] = (),
    prefill: bool = False,
    destroy: bool = False,
) -> dict[str, Any]:
    """Replay a trace once, write a row per request to `output`, and return the report.

    `targets`: the target of each volume by its name, or of ONLY for a trace of one volume. All volumes begin together.
    `skipped`: volumes that are left out.

    The report is that of drivelab.replay.evaluation.replay_report with `trace`, `target` and `failed_requests`, and
    `volumes` with a report of each, if the trace has several. During the replay its files lie next to `output` in a
    folder `.NAME.replay`. Ctrl-C ends the replay normally, as a partial replay.

    Raises UserError, before writing to a target, when a target may not be used, the trace does not fit, or the engine
    cannot start. A replay that ended early is not an error: see `partial`.
    """
    if (reason := native.possible()) is not None:
        raise UserError(f"the replay engine cannot run here: {reason}; fix that")
    refuse_volumes(trace, targets, skipped)
    if options.nvme and len(targets) > 1:
        raise UserError("--nvme: NVMe commands go to one drive; map one volume, or replay without --nvme")
    refuse_source(output, [trace, *map(Path, targets.values())])
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with opened_targets(targets, sheet, destroy) as opened, folder_of(output) as folder:
        volumes = Volumes(
            {volume: each.capacity_bytes for volume, each in opened.items()},
            max(each.logical_block_bytes for each in opened.values()),
        )
        prepared = prepare_volumes(trace, folder / PLAN, choice, volumes)
        try:
            report = _run(opened, prepared, folder, options, prefill=prefill)
        except BaseException:
            if (folder / OUTCOME_FILE).exists():
                _keep(folder, output)
                print(f"drivelab: the evaluation did not finish; the requests are in {output}", file=sys.stderr)
            raise
        _keep(folder, output)
    result = _on_target(report, opened.values())
    if volumes.named:
        each_report = report["volumes"]
        result["volumes"] = {name: _on_target(each_report[name], [opened[name]]) for name in opened}
    return {**result, "trace": {"name": trace.stem, "path": str(trace), "sha256": sha256_of(trace)}}


def _keep(folder: Path, output: Path) -> None:
    with writable(output):
        (folder / OUTCOME_FILE).replace(output)


def _run(
    opened: Mapping[str, Target],
    prepared: Prepared,
    folder: Path,
    options: EngineOptions,
    *,
    prefill: bool,
) -> dict[str, Any]:
    """Replay and return the report; raises UserError when the engine cannot begin."""
    targets = list(opened.values())

    def free_all() -> None:
        for each in targets:
            free(each)

    try:
        if prefill:
            _prefill(targets, prepared, folder, prefill_options(options), free_all)
        with suppress(KeyboardInterrupt):  # evaluate the completed part
            once.run(targets[0], prepared, folder, options, on_hang=free_all, others=targets[1:])
        if not once.begun(folder):
            raise KeyboardInterrupt
        return once.evaluate(prepared, folder)
    except CellFailed as failure:
        raise UserError(f"replay on {', '.join(each.label for each in targets)}: {failure}") from None


def _on_target(report: Mapping[str, Any], targets: Collection[Target]) -> dict[str, Any]:
    """Return a report with facts of its targets."""
    virtual = any(each.approved is not None and each.approved.virtual is not None for each in targets)
    kinds = dict.fromkeys(each.kind for each in targets)
    return {
        **report,
        "marks": [*(["virtual: the drive is a model"] if virtual else []), *report["marks"]],
        "target": {
            "label": ", ".join(each.label for each in targets),
            "kind": ", ".join(kinds),
            "capacity_bytes": sum(each.capacity_bytes for each in targets),
            "logical_block_bytes": max(each.logical_block_bytes for each in targets),
        },
        "failed_requests": sum(counts["requests"] for counts in report["failed"].values()),
    }


def _prefill(
    targets: Sequence[Target], prepared: Prepared, folder: Path, options: EngineOptions, on_hang: Callable[[], None]
) -> None:
    """Write the blocks that the trace reads, in a folder beside the replay's results."""
    directory = folder / "prefill"
    directory.mkdir()
    schedule = directory / "prefill.schedule"
    if not prefill_schedule(prepared.schedule, schedule):
        return
    others = [(each.path, each.identity) for each in targets[1:]]
    native.run_engine(
        targets[0].path, targets[0].identity, schedule, directory, options, others=others, on_hang=on_hang
    )
    check_prefill(directory)
