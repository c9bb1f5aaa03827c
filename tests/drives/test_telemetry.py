"""Telemetry during fio on a virtual drive in real time."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from stages import planned, run_stages

from drivelab.collect.collect import collect
from drivelab.recording.writer import read_journal
from drivelab.telemetry.sampler import read_lines, read_samples
from drivelab.telemetry.sources import sources_for
from drivelab.virtual import manage

pytestmark = pytest.mark.device

LOOP = """\
  - protocol: pts-iops
    scale: demo
    set:
      settle: 10ms
      fill: {capacity_multiple: 0.2}
      loop:
        runtime: 400ms
        cells: {read_share: [0], block_size: [4KiB]}
        until:
          steady_state:
            max_rounds: 5
            data_excursion: 500%
            slope_excursion: 500%
            track: [{read_share: 0, block_size: 4KiB, metric: iops}]
"""


def test_telemetry_spans_the_cells_and_fills_are_sampled_separately(project: Path, run_directory: Path) -> None:
    (plan,) = planned(LOOP, more="taint: {steal: 100%, load: 100%, remeasure: 0}\n")
    run_stages(plan)
    recording = plan.recording_path
    fill = list(read_samples(recording / "condition"))
    written = fill[-1]["sectors_written"] - fill[0]["sectors_written"]
    assert [512 * written] == [line["bytes"] for line in read_journal(recording) if line["event"] == "fill"]
    lines = list(read_lines(recording))
    assert (lines[0]["event"], lines[-1]["event"]) == ("begin", "end")
    assert {"host", "sectors"} <= set(lines[0]["sources"])
    samples = list(read_samples(recording))
    assert fill[-1]["at_s"] < samples[0]["at_s"]
    cells = [line for line in read_journal(recording) if line["event"] == "cell"]
    assert samples[0]["at_s"] < cells[0]["started_s"]
    assert samples[-1]["at_s"] > cells[-1]["ended_s"]
    assert all(a["at_s"] <= b["at_s"] for a, b in pairwise(samples))
    table = collect(recording, reduced=True)["cells"]
    for cell, row in zip(cells, table.to_dict("records"), strict=True):
        before = [sample for sample in samples if sample["at_s"] <= cell["started_s"]][-1]
        after = next(sample for sample in samples if sample["at_s"] >= cell["ended_s"])
        written_bytes = 512 * (after["sectors_written"] - before["sectors_written"])
        assert written_bytes >= row["bytes_written"], "the device's counter misses writes of fio"
        assert 0 <= row["load_pct"] <= row["cpu_pct"] <= 100
    # The samples around one cell may be so far apart that they include writes of other cells.
    written_bytes = 512 * (samples[-1]["sectors_written"] - samples[0]["sectors_written"])
    assert written_bytes >= table["bytes_written"].sum() > 0
    assert table["temperature_max_c"].isna().all(), "this virtual drive reports no temperature"
    assert table["throttled"].isna().all()
    assert not collect(recording, reduced=True)["telemetry"].empty


def test_only_load_of_other_programs_counts(run_directory: Path, drive: manage.VirtualDrive) -> None:
    """Both are real processes: a child of this process counts like fio, a child of init like other programs."""
    (source,) = (s for s in sources_for(Path(drive.device).name, helpers=[drive.pid]) if s.name == "host")
    busy_s = 1.5
    spin = f"import time\nwhile time.process_time() < {busy_s}: sum(range(100_000))"
    begin = source.read()
    subprocess.run([sys.executable, "-c", spin], check=True)
    middle = source.read()
    assert busy_s - 0.4 <= middle["own_user_s"] - begin["own_user_s"] < 2 * busy_s

    read_end, write_end = os.pipe()
    subprocess.run(["setsid", "--fork", sys.executable, "-c", spin], check=True, pass_fds=[write_end])
    os.close(write_end)
    assert os.read(read_end, 1) == b"", "a process still holds the other end"
    os.close(read_end)
    end = source.read()
    assert end["own_user_s"] - middle["own_user_s"] <= 0.3
    assert end["cpu_user_s"] - middle["cpu_user_s"] >= busy_s - 0.4
