"""The table `application_runs`, from the journal of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.tables.application_schemas import APPLICATION_RUNS
from drivelab.tables.run_soundness import judged_run, uncounted

_AS_IN_THE_JOURNAL = (
    "step", "phase", "phase_value", "phase_pass", "application", "cold", "duration_s", "command_s", "sync_s",
    "exit_status", "read_ios", "write_ios", "read_bytes", "write_bytes", "user_s", "system_s", "max_rss_bytes",
)  # fmt: skip


def application_runs(
    lines: Iterable[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    telemetry: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> pd.DataFrame:
    """Return table `application_runs` from the journal's `lines`, in order; empty without application runs.

    `steps` are the steps of the plan; `key` has the columns that identify the recording; `telemetry` returns the
    telemetry columns of a line. A run with invalid or negative numbers, or without duration, does not count;
    `taint_reason` says why.
    """
    rows: list[dict[str, Any]] = []
    after_gap = False
    for line in lines:
        after_gap |= line["event"] == "gap"
        if line["event"] != "application":
            continue
        facts, unsound = judged_run(line)
        measured = telemetry(line)
        rows.append(
            {
                **key,
                **{name: facts.get(name) for name in _AS_IN_THE_JOURNAL},
                "repeat": line["run"],
                "asked_passes": steps[line["step"]]["application"]["until"].get("passes"),
                "simulated_from": line.get("trace"),
                "after_gap": after_gap,
                **measured,
                **uncounted(unsound, not line["cold"], measured.get("taint_reason")),
            }
        )
        after_gap = False
    if not rows:
        return pd.DataFrame(columns=APPLICATION_RUNS.names)
    return pa.Table.from_pylist(rows, schema=APPLICATION_RUNS).to_pandas()
