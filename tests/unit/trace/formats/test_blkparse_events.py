"""Texts of blkparse are matched as the decoder matches the records behind them."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from block_layer import BlockLayer
from block_layer_parts import Setup
from trace_files import by_cpu, write_records
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace.decode import decode
from drivelab.trace.formats.common import block_events
from drivelab.trace.formats.common.importing import ImportReport, import_trace


def line(time_us: float, event: str, device: str = "8,0", cpu: int = 0) -> str:
    return f"{device:>7} {cpu:2} {1:8} {0:5}.{round(time_us * 1000):09} {7:5}  {event}\n"


def imported(folder: Path, text: str, **options: Any) -> tuple[list[dict[str, Any]], ImportReport]:
    (folder / "a text").write_text(text)
    report = import_trace(folder / "a text", folder / "t.parquet", **options)
    return read_trace(folder / "t.parquet")[0].to_pylist(), report


FLUSHING_WRITE = [
    line(0, "Q FWFS 1000 + 8 [fio]"), line(10, "D  FN [fio]"), line(4_100, "C  FN 0 [0]", cpu=1),
    line(4_110, "D  WS 1000 + 8 [fio]", cpu=1), line(12_500, "C  WS 1000 + 8 [0]"), line(12_510, "D  FN [fio]"),
    line(19_000, "C  FN 0 [0]", cpu=1), line(19_005, "C FWFS 1000 [0]", cpu=1),
]  # fmt: skip


def test_a_flushing_write_ends_with_its_flush_sequence(tmp_path: Path) -> None:
    rows, report = imported(tmp_path, "".join(FLUSHING_WRITE))
    assert [(row["queue_ns"], row["dispatch_ns"], row["complete_ns"]) for row in rows] == [(0, 4_110_000, 19_005_000)]
    assert (report.unmatched, report.skipped) == ({}, {})


def test_a_very_late_end_of_a_flush_sequence_corrects_the_request(tmp_path: Path) -> None:
    text = "".join(FLUSHING_WRITE[:5])
    for number in range(10_000):
        events = [f"Q   R {8 * number} + 8 [fio]", f"D   R {8 * number} + 8 [fio]", f"C   R {8 * number} + 8 [0]"]
        text += "".join(line(13_000 + number, event) for event in events)
    rows, report = imported(tmp_path, text + line(30_000, "C FWFS 1000 [65531]"))
    assert (rows[0]["complete_ns"], rows[0]["error"], report.unmatched) == (30_000_000, 5, {})


def test_comments_are_not_malformed(tmp_path: Path) -> None:
    _, report = imported(tmp_path, "#Maj,Mn CPU seq time\n" + "# two\n".join(FLUSHING_WRITE))
    assert (report.rows, report.malformed, report.skipped) == (1, 0, {"comment lines": 8})


def test_the_output_of_one_cpu_after_the_other_is_merged(tmp_path: Path) -> None:
    expected, _ = imported(tmp_path, "".join(FLUSHING_WRITE))
    by_cpu = sorted(FLUSHING_WRITE, key=lambda text: text.split()[1])
    assert by_cpu != FLUSHING_WRITE
    for lines in (by_cpu, by_cpu[::-1]):
        rows, report = imported(tmp_path, "".join(lines))
        assert (rows, report.unmatched, report.out_of_order) == (expected, {}, 0)


def test_a_text_in_great_disorder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_events, "MOST_SERIES", 7)
    with pytest.raises(UserError, match=r"not in order of time.* LC_ALL=C sort -s -k4,4n '.*a text' > sorted\.txt"):
        imported(tmp_path, "".join(FLUSHING_WRITE[::-1]))
    command = ["sort", "-s", "-k4,4n", str(tmp_path / "a text")]
    done = subprocess.run(command, env={"LC_ALL": "C"}, capture_output=True, text=True, check=True)
    assert done.stdout == "".join(FLUSHING_WRITE)


def test_too_many_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_events, "MOST_VOLUMES", 2)
    with pytest.raises(UserError, match="more than 2 devices"):
        imported(tmp_path, "".join(line(at, "Q  WS 0 + 8 [fio]", f"8,{at}") for at in range(3)))


PARTS = [(0, 255), (255, 255), (510, 255), (765, 235)]


@pytest.mark.parametrize("dispatched", [[], [(0, 1000)], PARTS])
def test_an_error_in_one_part_of_a_split_write_is_kept(tmp_path: Path, dispatched: list[tuple[int, int]]) -> None:
    """A device without a queue, such as one of the device mapper, completes the parts without a dispatch."""
    text = line(0, "Q  WS 0 + 1000 [fio]")
    text += "".join(line(at, f"X  WS {at - 255} / {at} [fio]") for at in (255, 510, 765))
    text += "".join(line(1000 + at, f"D  WS {at} + {sectors} [fio]") for at, sectors in dispatched)
    for at, sectors in PARTS:
        text += line(2000 + at, f"C  WS {at} + {sectors} [{0 if at else 65531}]")
    rows, report = imported(tmp_path, text)
    assert [(row["complete_ns"], row["error"]) for row in rows] == [(2_765_000, 5)]
    assert report.unmatched == {}


def test_a_split_beyond_2_tib_is_printed_with_half_its_sector(tmp_path: Path) -> None:
    text = line(0, f"Q  WS {(1 << 32) - 8} + 16 [fio]") + line(1, f"X  WS {(1 << 32) - 8} / 0 [fio]")
    text += line(2, f"D  WS {1 << 32} + 8 [fio]") + line(3, f"C  WS {1 << 32} + 8 [0]")
    text += line(4, f"D  WS {(1 << 32) - 8} + 8 [fio]") + line(5, f"C  WS {(1 << 32) - 8} + 8 [0]")
    rows, report = imported(tmp_path, text)
    assert [(row["dispatch_ns"], row["complete_ns"], row["pieces"]) for row in rows] == [(2000, 5000, 2)]
    assert report.unmatched == {}


def test_completions_alone_are_refused_with_what_to_capture(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"2 completions \(C\) but no queue and no issue events .*blktrace .* -a issue"):
        imported(tmp_path, line(0, "C  WS 0 + 8 [0]") + line(1, "C  WS 8 + 8 [0]"))


def test_each_volume_is_imported_with_its_own_times(tmp_path: Path) -> None:
    draw, lines, expected = random.Random(3), list[str](), dict[str, list[int]]()
    for number in range(200):
        device = draw.choice(["8,0", "8,16", "259,1"])
        lines.append(line(10 * number, f"Q  WS {8 * number} + 8 [program {number % 3}]", device))
        lines.append(line(10 * number + 1, f"C  WS {8 * number} + 8 [0]", device))
        expected.setdefault(device, []).append(number)
    (tmp_path / "text").write_text("".join(lines[200:] + lines[:200]))
    for device, numbers in expected.items():
        report = import_trace(tmp_path / "text", tmp_path / "t.parquet", volume=device)
        assert (report.out_of_order, report.unmatched, report.other_volumes) == (0, {}, 200 - len(numbers))
        table = pd.read_parquet(tmp_path / "t.parquet")
        assert table["queue_ns"].tolist() == [10_000 * (number - numbers[0]) for number in numbers]
        assert table["process"].tolist() == [f"program {number % 3}" for number in numbers]


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
@pytest.mark.parametrize("seed", range(12))
def test_a_text_is_matched_as_its_capture(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_events, "_BUFFER_BYTES", 500)
    setup = Setup(cgroups=False, cpus=3, bios=80, has_queue=seed % 4 != 3, device_fua=seed % 2 == 0)
    folder = write_records(tmp_path / "c", *by_cpu(BlockLayer(setup, seed).records, 3))
    run = ["blkparse", "-q", "-i", "trace"]
    text = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True).stdout
    if seed % 3 == 0:
        text = "".join(sorted(text.splitlines(keepends=True), key=lambda row: row.split()[1:2]))
    summary = decode(folder, tmp_path / "binary.parquet")
    (tmp_path / "text").write_text(text)
    report = import_trace(tmp_path / "text", tmp_path / "text.parquet")
    ours, theirs = (pd.read_parquet(tmp_path / name) for name in ("binary.parquet", "text.parquet"))
    for times in ("complete_ns", "dispatch_ns", "queue_ns"):
        ours[times] -= ours["queue_ns"][0]
    pd.testing.assert_frame_equal(ours, theirs, check_categorical=False)
    assert report.unmatched == summary["unmatched"]
    assert report.malformed == 0
