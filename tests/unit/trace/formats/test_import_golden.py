"""Imports of each format against values calculated by hand."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from drivelab.trace.formats.common.importing import ImportReport, import_trace
from drivelab.trace.parquet_schema import read_trace


def imported(folder: Path, content: str | bytes, **options: Any) -> tuple[list[dict[str, Any]], ImportReport]:
    """Import a text; return rows and report. By default the format is detected."""
    path = folder / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    report = import_trace(path, folder / "t.parquet", **options)
    table, provenance = read_trace(folder / "t.parquet")
    assert table.num_rows == report.rows
    assert provenance["format_imported"] == report.format
    assert provenance["source"] == "file"
    assert provenance["volume"] == report.volume
    assert provenance["malformed"] == report.malformed
    assert provenance.get("first_event") == report.first_event
    assert provenance["time_resolution_ns"] == report.time_resolution_ns
    return table.to_pylist(), report


def picked(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["queue_ns"], row["complete_ns"], row["operation"], row["offset_bytes"], row["length_bytes"]


def vscsi_1(command: int, length: int, lbn: int, time_us: int) -> bytes:
    return struct.pack("<IIIHHQQ", 1, length, 1, command, 0x0100, lbn, time_us)


def vscsi_2(command: int, length: int, lbn: int, time_us: int, response_us: int) -> bytes:
    return struct.pack("<HHIIIQQQ", command, 0x0200, 1, length, 1, lbn, time_us, response_us)


BLKPARSE = """\
  8,0    3        1     0.000000000   697  A  WS 223490 + 8 <- (8,1) 223427
  8,0    3        2     5.000000100   697  Q  WS 223490 + 8 [kjourn ald]
  8,0    3        3     5.000000200   697  G  WS 223490 + 8 [kjournald]
  8,0    3        4     5.000000300   697  Q   R 100 + 8 [cat]
  8,0    3        5     5.000000400   697  Q   R 108 + 8 [cat]
  8,0    3        6     5.000000500   697  M   R 108 + 8 [cat]
  8,0    3        7     5.000000600   697  D   R 100 + 16 [cat]
  8,0    3        8     5.000000700   697  D  WS 223490 + 8 [kjournald]
  8,0    1        9     5.000000800     0  C  WS 223490 + 8 [0]
  8,0    1       10     5.000000900     0  C   R 100 + 16 [5]
  8,0    1       11     5.000001000     7  Q   W 200 + 16 [dd]
  8,0    1       12     5.000001100     7  X   W 200 / 208 [dd]
  8,0    1       13     5.000001200     7  D   W 200 + 8 [dd]
  8,0    1       14     5.000001300     7  D   W 208 + 8 [dd]
  8,0    1       15     5.000001400     7  C   W 200 + 8 [0]
  8,0    1       16     5.000001500     7  C   W 208 + 8 [0]
  8,0    1       17     5.000001600     7  Q FWS [fsync]
  8,0    1       18     5.000001700     7  D  FN [kworker]
  8,0    1       19     5.000001800     7  C  FN 0 [0]
  8,0    1       20     5.000001900     7  C  WS 0 [0]
  8,0    1       21     5.000002000     7  Q  RA 4096 + 8 [(null)]
  8,0    1        0     5.000002100     7  m   N cfq697 / alloced
  8,0    1       22     5.000002200     7  U   N [cat] 1
  8,0    1       23     5.000002300     7  D   R 36 (12 00 00 00 24 00) [hald]
CPU1 (trace):
 Reads Queued:           3,        8KiB\t Writes Queued:           4,     1028KiB
Total (8,0):
 Read depth:             1        \t Write depth:             1

Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,0): 16 entries
Skips: 0 forward (0 -   0.0%)
"""
S, MS = 10**9, 10**6
GOLDEN: dict[str, tuple[str | bytes, list[tuple[Any, ...]], dict[str, Any], dict[str, list[Any]]]] = {
    "msr": (
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,2517286912,4096,9\n",
        [(0, 4_128_600, "read", 7014609920, 24576), (1_332_052_600, 1_332_053_500, "write", 2517286912, 4096)],
        {"format": "msr", "volume": "usr_0", "first_event": "2007-02-22T17:00:00.306162+00:00",
         "time_resolution_ns": 100, "duration_s": 1.3320535},
        {"process": ["", ""], "pid": [-1, -1], "cpu": [-1, -1], "dispatch_ns": [None, None],
         "dispatch_id": [None, None], "pieces": [1, 1], "sync": [False, False]},
    ),
    "spc with spaces, capitals and further fields": (
        "0,303567,3584,w,0.000000\n 0 , 21741712,24576,R, 0.000774 \n0,1,0,r,1,x,y\n",
        [(0, None, "write", 155426304, 3584), (774_000, None, "read", 11131756544, 24576), (S, None, "read", 512, 0)],
        {"format": "spc", "volume": "0", "zero_length": 1, "first_event": None},
        {},
    ),
    "fiu with any number of digests": (
        "89968195792462 20782 gzip 283193184 8 R 6 0 0123456789abcdef\n"
        "89968195792463 5 ls 1 16 W 6 0 abc def\n89968195792470 5 ls 2 1 W 6 0\n",
        [(0, None, "read", 144994910208, 4096), (1, None, "write", 512, 8192), (8, None, "write", 1024, 512)],
        {"format": "fiu", "volume": "6,0"},
        {"process": ["gzip", "ls", "ls"], "pid": [20782, 5, 5]},
    ),
    "alibaba": (
        "419,W,8792731648,16384,1577808144360767\n419,R,0,512,1577808144360768\n",
        [(0, None, "write", 8792731648, 16384), (1000, None, "read", 0, 512)],
        {"format": "alibaba", "volume": "419", "first_event": "2019-12-31T16:02:24.360767+00:00"},
        {},
    ),
    "tencent": (
        "1538323199,1003027216,16,0,2313\n1538323200,1,1,1,2313\n",
        [(0, None, "read", 513549934592, 8192), (S, None, "write", 512, 512)],
        {"format": "tencent", "volume": "2313", "time_resolution_ns": S,
         "first_event": "2018-09-30T15:59:59.000000+00:00"},
        {},
    ),
    "systor17 with a header and an unanswered request": (
        "Timestamp,Response,IOType,LUN,Offset,Size\n"
        "1456095145.133076000,0.000806000,R,0,899056122368,131072\n"
        "1456095145.133076001,,,0,1,1\n"
        "1456095145.133076002,,W,0,4096,512\n",
        [(0, 806_000, "read", 899056122368, 131072), (2, None, "write", 4096, 512)],
        {"format": "systor17", "volume": "0", "malformed": 0, "first_event": "2016-02-21T22:52:25.133076+00:00",
         "skipped": {"header lines": 1, "lines without an IOType": 1}},
        {},
    ),
    "vscsi 1": (
        vscsi_1(0x28, 4096, 8, 100) + vscsi_1(0x8A, 512, 1 << 40, 107),
        [(0, None, "read", 4096, 4096), (7000, None, "write", 512 << 40, 512)],
        {"format": "vscsi", "volume": ""},
        {},
    ),
    "vscsi 2 with responses": (
        vscsi_2(0x2A, 65536, 1, 5, 250) + vscsi_2(0x35, 0, 77, 6, 1),
        [(0, 250_000, "write", 512, 65536), (1000, 2000, "flush", 0, 0)],
        {"operations": {"write": 1, "flush": 1}},
        {},
    ),
    "fio iolog v2, whose waits are ms since the start": (
        "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda wait 1000 0\n"
        "/dev/sda write 4096 512\n/dev/sda wait 900 0\n/dev/sda datasync 0 0\n/dev/sda wait 1500 0\n"
        "/dev/sda trim 8192 4096\n/dev/sda close\n",
        [(0, None, "read", 0, 4096), (S, None, "write", 4096, 512), (S, None, "flush", 0, 0),
         (1_500_000_000, None, "discard", 8192, 4096)],
        {"skipped": {"header lines": 1, "add, open and close lines": 3, "wait lines": 3}},
        {},
    ),
    "fio iolog v3": (
        "fio version 3 iolog\n18 /tmp/f add\n20 /tmp/f open\n120 /tmp/f read 0 4096\n140 /tmp/f sync 61440 0\n"
        "150 /tmp/f wait 5 0\n151 /tmp/f trim 512 512\n605 /tmp/f close\n",
        [(0, None, "read", 0, 4096), (20_000, None, "flush", 0, 0), (31_000, None, "discard", 512, 512)],
        {"format": "fio-iolog-v3", "volume": "/tmp/f",
         "skipped": {"header lines": 1, "add, open and close lines": 3, "wait lines": 1}},
        {},
    ),
    "biosnoop, whose times are derived from the completion": (
        "TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)\n"
        "0.000004001    supervise      1950   xvda1   W  13092560   4096       0.74\n"
        "0.001000       Web Content    1951   xvda1   R  8          512        0.01\n"
        "0.002000       jbd2/xvda1-8   303    xvda1   R  18446744073709551615 0  0.50\n",
        [(0, 740_000, "write", 13092560 * 512, 4096), (1_725_999, 1_735_999, "read", 4096, 512),
         (2_235_999, 2_735_999, "flush", 0, 0)],
        {"format": "biosnoop", "volume": "xvda1", "skipped": {"header lines": 1}},
        {"dispatch_ns": [0, 1_725_999, 2_235_999], "process": ["supervise", "Web Content", "jbd2/xvda1-8"],
         "pid": [1950, 1951, 303]},
    ),
    "biosnoop with pattern": (
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P LAT(ms)\n"
        "1.000000    fio            7       sda       W 8          4096   S    1.50\n"
        "2.000000    fio            7       sda       W 8          1048576R    1.50\n",
        [(0, 1_500_000, "write", 4096, 4096), (S, S + 1_500_000, "write", 4096, 1 << 20)],
        {"format": "biosnoop"},
        {"dispatch_ns": [0, S]},
    ),
    "biosnoop with pattern and queue times": (
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P QUE(ms) LAT(ms)\n"
        "1.000000    fio            7       sda       W 8          4096   S    0.25    1.50\n"
        "2.000000    fio            7       sda       W 8          16777216?    0.25    1.50\n",
        [(0, 1_750_000, "write", 4096, 4096), (S, S + 1_750_000, "write", 4096, 1 << 24)],
        {"format": "biosnoop"},
        {"dispatch_ns": [250_000, S + 250_000]},
    ),
    "biosnoop with the time of day, also after midnight": (
        "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n" + "".join(
            f"{time} fio            7       sda     WS   8          4096      0.500\n"
            for time in ("23:59:58.250", "23:59:59.999", "23:59:59.998", "00:00:00.001", "13:00:00.000", "00:30:00.000")
        ),
        [(MS * ms, MS * ms + MS // 2, "write", 4096, 4096) for ms in (0, 1748, 1749, 1751, 46_801_750, 88_201_750)],
        {"format": "biosnoop", "time_resolution_ns": 1_000_000, "skipped": {"header lines": 1}},
        {},
    ),
    "biosnoop with queue times and flags": (
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n"
        "1.000000    fio            7       sda       WS 8          4096     0.30    1.20\n"
        "1.000100    fio            7       sda       R 16          4096    -1.00    0.10\n",
        [(0, 1_500_000, "write", 4096, 4096), (1_500_000, 1_600_000, "read", 8192, 4096)],
        {"format": "biosnoop"},
        {"dispatch_ns": [300_000, 1_500_000], "sync": [True, False]},
    ),
    "blkparse, which follows merges, splits and flushes": (
        BLKPARSE,
        [(0, 700, "write", 223490 * 512, 4096), (200, 800, "read", 51200, 4096), (300, 800, "read", 108 * 512, 4096),
         (900, 1400, "write", 102400, 8192), (1500, 1800, "flush", 0, 0), (1900, None, "read", 4096 * 512, 4096)],
        {"unmatched": {"undispatched": 1},
         "skipped": {"events A": 1, "events G": 1, "events m": 1, "events U": 1, "passed-through commands": 1,
                     "lines of the summary": 7}},
        {"dispatch_ns": [600, 500, 500, 1100, 1600, None], "error": [0, 5, 5, 0, 0, 0],
         "process": ["kjourn ald", "cat", "cat", "dd", "fsync", ""], "pid": [697, 697, 697, 7, 7, 7],
         "cpu": [3, 3, 3, 1, 1, 1], "sync": [True, False, False, False, True, False],
         "readahead": [False] * 5 + [True]},
    ),
}  # fmt: skip
"""Content; queue and completion time, operation, offset and length of each row; facts of the report; other columns."""


@pytest.mark.parametrize("name", GOLDEN)
def test_an_import_has_the_values_calculated_by_hand(tmp_path: Path, name: str) -> None:
    content, expected, facts, columns = GOLDEN[name]
    rows, report = imported(tmp_path, content)
    assert [picked(row) for row in rows] == expected
    assert {fact: getattr(report, fact) for fact in facts} == facts
    assert {column: [row[column] for row in rows] for column in columns} == columns


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("10485761234.56", (1048576, 0, 1_234_560_000)),
        ("167772161234.56", (16777216, 0, 1_234_560_000)),
        ("104857681234.56", (1048576, 0, 81_234_560_000)),
        ("10485761234.56    7.00", (1048576, 1_234_560_000, 7_000_000)),
        ("1048576 1234.56", (1048576, 0, 1_234_560_000)),
    ],
)
def test_biosnoop_with_columns_that_run_together(tmp_path: Path, end: str, expected: tuple[int, int, int]) -> None:
    rows, _ = imported(tmp_path, f"99.000000   fio            7       sda       W 8          {end}\n")
    delays = [(row["dispatch_ns"] - row["queue_ns"], row["complete_ns"] - row["dispatch_ns"]) for row in rows]
    assert [(rows[0]["length_bytes"], *delays[0])] == [expected]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings_and_blank_lines_do_not_matter(tmp_path: Path, ending: str) -> None:
    lines = ["\ufeff0,1,512,w,0.5", "", "0,2,512,r,0.6", "   ", "0,3,512,r,0.7", "", ""]
    rows, report = imported(tmp_path, ending.join(lines))
    assert [row["offset_bytes"] for row in rows] == [512, 1024, 1536]
    assert (report.malformed, report.unterminated) == (0, False)
