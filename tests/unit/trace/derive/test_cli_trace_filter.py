"""`drivelab trace filter` and `synthesise`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from made_traces import Row, read, write

from drivelab.cli.traces import trace_filter
from drivelab.cli.traces.trace_filter import byte_range, time_ns
from drivelab.core.errors import UserError
from drivelab.plan.grammar import load
from drivelab.trace.derive.filter import show_ns

ROWS = [
    Row(0, 1, 1_000_000, process="db", pid=7),
    Row(2_000_000, 2_000_001, 500_000_000, "write", 8192, process="db", pid=8),
    Row(400_000_000, 400_000_001, 410_000_000, process="backup", pid=9),
    Row(3_000_000_000, 3_000_000_001, 3_000_100_000, "flush", 0, 0),
]
ABOUT = {"capacity_bytes": 1 << 20, "first_event": "2026-01-02T03:04:05+00:00", "lost": {"overrun": 3}}


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    trace_filter.add_actions(parser.add_subparsers(required=True))
    options = parser.parse_args(list(map(str, arguments)))
    return int(options.handler(options))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "a.parquet", ROWS, ABOUT)


@pytest.mark.parametrize(
    ("arguments", "printed", "kept"),
    [
        ("--from 300ms --to 1s",
         ["b.parquet: 1 request\n", "removed: 2 requests before the cut and 1 after it",
          "missing: 1 request in flight at the start of the cut", "LOSSY, like its source a.parquet: 3 overrun"],
         [ROWS[2].later(-300_000_000)]),
        ("--idle-above 100ms --idle-keep 10ms",
         ["1 gap above 100 ms (nothing in flight) shortened to 10 ms: 2.49 s removed"],
         [*ROWS[:3], ROWS[3].later(-2_490_000_000)]),
        ("--idle-above 1min", ["no gap above 60 s"], ROWS),
        ("--process db --operation read,write", ["removed: 1 read (4 KiB), 1 flush (0 B)"], ROWS[:2]),
        ("--pid 7 --pid 10 --not", ["the trace has no request of pid 10"], ROWS[1:]),
        ("--range 8KiB.. --json", ['"read": {'], [ROWS[1]]),
    ],
)  # fmt: skip
def test_a_derived_trace_and_what_is_said_of_it(
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    printed: list[str],
    kept: list[Row],
) -> None:
    assert run("filter", source, *arguments.split(), "-o", tmp_path / "b.parquet") == 0
    text = capsys.readouterr().out
    for phrase in printed:
        assert phrase in text
    if "--json" in arguments:
        assert json.loads(text)["dropped"]["read"]["requests"] == 2
    assert read(tmp_path / "b.parquet")[0] == kept


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--operation reed", "operation 'reed' is unknown; choose from read, write"),
        ("--idle-keep 1s", "give the longest gap that is not changed with --idle-above"),
    ],
)
def test_impossible_options_are_refused(source: Path, tmp_path: Path, arguments: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        run("filter", source, *arguments.split(), "-o", tmp_path / "b.parquet")


def test_repeat(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("filter", source, "--written", "20KiB", "-o", tmp_path / "b.parquet") == 0
    printed = capsys.readouterr().out
    assert "b.parquet: 20 requests" in printed
    assert "5 times, each behind the device of the one before: 20 KiB written" in printed


def test_synthesise(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("synthesise", source, "-o", tmp_path / "made.yaml", "--streams", 1) == 0
    printed = capsys.readouterr().out
    assert "66.67%" in printed
    assert "streams left out: 1 with 1 request" in printed
    assert load(tmp_path / "made.yaml").name == "made"
    assert run("synthesise", source, "-o", tmp_path / "made.yaml", "--block", "8KiB", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [stream["workload"] for stream in report["streams"]] == ["RND 8KiB 100/0", "RND 8KiB 0/100"]
    assert report["rounded"] == 3
    assert any(text.startswith("sizes: 3 requests rounded up") for text in report["not_carried_over"])


def test_a_catalogue_name_is_accepted(tmp_path: Path) -> None:
    assert run("filter", "sqlite-inserts", "--to", "100ms", "-o", tmp_path / "b.parquet") == 0
    with pytest.raises(UserError, match=r"is not in the catalogue"):
        run("filter", "sqlite-insert", "--to", "100ms", "-o", tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.5s", 1_500_000_000), ("200ms", 200_000_000), ("3min", 180 * 10**9), ("0", 0), ("0s", 0), ("7us", 7000),
     ("0.000001s", 1000), ("2h", 7200 * 10**9)],
)  # fmt: skip
def test_times(text: str, expected: int) -> None:
    assert time_ns(text) == expected


@pytest.mark.parametrize("text", ["5", "-1s", "1.5", "s", "1 fortnight", ""])
def test_invalid_times_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a duration"):
        time_ns(text)


def test_times_are_printed_exactly() -> None:
    shown = [show_ns(time) for time in (0, 1, 1500, 2_000_000, 1_000_000_001, 90 * 10**9)]
    assert shown == ["0 s", "1 ns", "1.5 us", "2 ms", "1.000000001 s", "90 s"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0..1GiB", (0, 1 << 30)), ("4096..8192", (4096, 8192)), ("1MiB..", (1 << 20, None)), ("..512B", (0, 512))],
)
def test_ranges(text: str, expected: tuple[int, int | None]) -> None:
    assert byte_range(text) == expected


@pytest.mark.parametrize("text", ["..", "5", "8KiB..4KiB", "4KiB..4096", "a..b", "-1..5"])
def test_invalid_ranges_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        byte_range(text)
