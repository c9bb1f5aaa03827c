"""Malformed lines are detected, numbered, explained and counted."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.trace.formats.common.importing import import_trace
from drivelab.trace.parquet_schema import read_trace

GOOD = {
    "msr": "128166372003061629,usr,0,Read,7014609920,24576,41286",
    "spc": "0,303567,3584,w,0.000000",
    "fiu": "89968195792462 20782 gzip 283193184 8 R 6 0 abc",
    "alibaba": "419,W,8792731648,16384,1577808144360767",
    "tencent": "1538323199,1003027216,16,0,2313",
    "systor17": "1456095145.133076000,0.000806000,R,0,899056122368,131072",
    "fio-iolog-v2": "/dev/sda read 0 4096",
    "fio-iolog-v3": "120 /dev/sda read 0 4096",
    "biosnoop": "0.000004    supervise    1950   xvda1   W  13092560   4096   0.74",
    "blkparse-text": "  8,0    3        2     0.000000100   697  Q  WS 223490 + 8 [kjournald]",
}
HEADERS = {"fio-iolog-v2": "fio version 2 iolog\n", "fio-iolog-v3": "fio version 3 iolog\n"}
BAD = [
    ("msr", "128166372003061629,usr,0,Read,7014609920,24576", "has 6 columns instead of 7"),
    ("msr", "128166372003061629,usr,0,Trim,7014609920,24576,1", "Type 'Trim' is not one of Read, Write"),
    ("msr", "128166372003061629,usr,0,Read,7014609920.0,24576,1", "Offset '7014609920.0' is not a whole number"),
    ("msr", "128166372003061629,usr,0,Read,-4096,24576,1", "Offset is negative"),
    ("msr", "128166372003061629,usr,0,Read,0x10,24576,1", "Offset is not decimal"),
    ("msr", "128166372003061629,usr,0,Read,9223372036854775807,1,1", "the request ends beyond 2^63"),
    ("msr", "128166372003061629,usr,0,Read,0,9223372036854775807,1", "the request is longer than 2^58"),
    ("msr", "99999999999999999999,usr,0,Read,1,1,1", "Timestamp '99999999999999999999' is not a whole number"),
    ("msr", "9223372036854775807,usr,0,Read,1,1,1", "the time is beyond 2^62"),
    ("msr", "128166372003061629,usr,0,Read,1,1,922337203685477580", "ResponseTime times 100 is beyond 2^63"),
    ("msr", "128166372003061629,usr,0,Read,1,1,52233720368547758", "the response time is longer than 146 years"),
    ("msr", "128166372003061629,u\0sr,0,Read,1,1,1", "has a NUL byte"),
    ("msr", "128166372003061629,usr,0,Read,1,1,1\r1,2", "has a carriage return"),
    ("msr", "128166372003061629,us\udcffr,0,Read,1,1,1", "Hostname is not valid UTF-8"),
    ("msr", "128166372003061629,usr,0,Read,,24576,1", "Offset '' is not a whole number"),
    ("msr", '"128166372003061629",usr,0,Read,1,24576,1', "is not a whole number"),
    ("spc", "0,303567,3584,x,0.000000", "Opcode 'x' is not one of r, R, w, W"),
    ("spc", "0,303567,3584,w", "has 4 columns instead of at least 5"),
    ("spc", "0,36028797018963968,512,w,0.5", "LBA times 512 is beyond 2^63"),
    ("spc", "0,1,512,w,0.0000000001", "is not a number of seconds with up to nine decimals"),
    ("spc", "0,1,512,w,-0.5", "Timestamp is negative or beyond"),
    ("spc", "0,1,512,w,9300000000", "Timestamp is negative or beyond 2^63 ns"),
    ("spc", "0,1,512,w,nan", "Timestamp 'nan' is not a number"),
    ("fiu", "89968195792462 20782 g zip 283193184 8 R 6 0 abc", "'zip' is not a whole number"),
    ("fiu", "89968195792462 2147483648 gzip 283193184 8 R 6 0 abc", "pid is beyond 2^31"),
    ("fiu", "89968195792462 1 gzip 283193184 8 R 6", "has 7 columns instead of at least 8"),
    ("alibaba", "419,D,8792731648,16384,1577808144360767", "opcode 'D' is not one of R, W"),
    ("alibaba", "419,W,8792731648,16384,15778081443607.67", "timestamp '15778081443607.67' is not a whole number"),
    ("tencent", "1538323199,1003027216,16,2,2313", "IOType '2' is not one of 0, 1"),
    ("tencent", "1538323199,1003027216,36028797018963968,1,2313", "Size times 512"),
    ("systor17", "1456095145.1330760001,0.000806000,R,0,1,1", "up to nine decimals"),
    ("systor17", "1456095145.13,0.1,U,0,1,1", "IOType 'U' is not one of R, W, blank"),
    ("fio-iolog-v2", "/dev/sda read 0", "has 3 columns instead of 4"),
    ("fio-iolog-v2", "/dev/sda erase 0 1", "action 'erase' is not one of"),
    ("fio-iolog-v3", "/dev/sda read 0 4096", "has 4 columns instead of 5"),
    ("fio-iolog-v3", "-5 /dev/sda read 0 4096", "timestamp is negative"),
    ("biosnoop", "0.000004    supervise    1950   W  13092560   4096   0.74", "is not of the form TIME COMM PID"),
    ("biosnoop", "0.1    supervise    1950   sda   Q  13092560   4096   0.74", "'Q' is not an operation"),
    ("biosnoop", "0.1    supervise    1950   sda   R  18446744073709551615   4096   0.74", "SECTOR is beyond"),
    (
        "biosnoop",
        "0.1  supervise  1950  sda  W 8          10485765121234.56",
        "'10485765121234.56' could be 1048576 and 5121234.56 or 1048576512 and 1234.56; put a space between them",
    ),
    ("biosnoop", "0.1  supervise  1950  sda  W 8          10485771234.56", "are not whole sectors and a time"),
    (
        "blkparse-text",
        "  8,0    3        2     0.0000001   697  Q  WS 223490 + 8 [x]",
        "is not of the form device, CPU",
    ),
    ("blkparse-text", "  8,0    3        2     0.000000100   697  Y  WS 223490 + 8 [x]", "action 'Y' is unknown"),
    ("blkparse-text", "  8,0    3        2     0.000000100   697  Q  QS 223490 + 8 [x]", "'QS' is not an operation"),
    ("blkparse-text", "  8,0    3        2     0.000000100   697  Q  WS 223490 - 8 [x]", "is not a request"),
    ("blkparse-text", "  8,0    3        2     0.000000100   697  C  WS 223490 + 8 [x]", "error 'x' is not a number"),
    ("blkparse-text", "8,0 3 2 0.000000100 697 QM WS 8 + 8 [x]", "action 'QM' is unknown"),
    ("blkparse-text", "8,0 3 2 0.000000100 697 D WS 8 + 8388608 [x]", "the request has 4 GiB or more"),
    ("blkparse-text", "8,0 3 2 0.000000100 697 D WS 9007199254740991 + 8 [x]", "ends beyond 2^62 bytes"),
    ("blkparse-text", "8,0 3 2 9999999999.000000100 697 Q WS 8 + 8 [x]", "longer than 146 years"),
]


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / "file"
    text = HEADERS.get(name, "") + "".join(f"{line}\n" for line in lines)
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


@pytest.mark.parametrize(("name", "bad", "reason"), BAD)
def test_a_malformed_line_is_refused_with_its_number_or_skipped_within_the_limit(
    tmp_path: Path, name: str, bad: str, reason: str
) -> None:
    path = written(tmp_path, name, *[GOOD[name]] * 20, "", bad, *[GOOD[name]] * 5)
    number = 22 + (name in HEADERS)
    with pytest.raises(UserError) as caught:
        import_trace(path, tmp_path / "t.parquet", format_name=name)
    assert f"line {number} is malformed: " in str(caught.value)
    assert reason in str(caught.value)
    assert "--max-malformed" in str(caught.value)
    assert [left.name for left in tmp_path.iterdir()] == ["file"]

    path = written(tmp_path, name, bad, GOOD[name], bad, GOOD[name], bad)
    first = 1 + (name in HEADERS)
    report = import_trace(path, tmp_path / "t.parquet", format_name=name, max_malformed=3)
    assert (report.rows, report.malformed) == (2, 3)
    assert [entry["line"] for entry in report.malformed_first] == [first, first + 2, first + 4]
    assert all(reason in entry["reason"] for entry in report.malformed_first)
    table, provenance = read_trace(tmp_path / "t.parquet")
    assert len(set(table["offset_bytes"].to_pylist())) == 1
    assert provenance["malformed"] == 3
    assert provenance["lost"] == {"malformed": 3}


def test_an_import_above_the_limit_lists_the_malformed_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "spc", "x", GOOD["spc"], "y", "z")
    with pytest.raises(
        UserError, match=r"more than 2 malformed lines, the first are 1 \(has 1 columns.*, 3 \(.*, 4 \("
    ):
        import_trace(path, tmp_path / "t.parquet", format_name="spc", max_malformed=2)


@pytest.mark.parametrize("bad", ["x", "", "0,a,512,w,0", "0,1,512,z,0"])
def test_only_ten_malformed_lines_are_listed(tmp_path: Path, bad: str) -> None:
    path = written(tmp_path, "spc", *[bad, ""] * 150, GOOD["spc"])
    report = import_trace(path, tmp_path / "t.parquet", format_name="spc", max_malformed=10_000)
    assert report.rows == 1
    assert report.malformed == (150 if bad else 0)
    assert [entry["line"] for entry in report.malformed_first] == ([*range(1, 21, 2)] if bad else [])


def test_an_endless_line_is_malformed(tmp_path: Path) -> None:
    path = written(tmp_path, "spc", GOOD["spc"], "0,1,512,w,0." + "0" * 10_000_000, GOOD["spc"])
    report = import_trace(path, tmp_path / "t.parquet", format_name="spc", max_malformed=1)
    assert report.rows == 2
    assert report.malformed_first == [{"line": 2, "reason": "is longer than 1048576 bytes"}]


def test_a_last_line_without_newline_is_imported_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(f"{GOOD['spc']}\n{GOOD['spc']}")
    report = import_trace(path, tmp_path / "t.parquet")
    assert (report.rows, report.unterminated) == (2, True)


def record(version: int, command: int = 0x28, lbn: int = 8, time_us: int = 100) -> bytes:
    return struct.pack("<HHIIIQQQ", command, version << 8, 1, 4096, 1, lbn, time_us, 5)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(3), "is not of version 2"),
        (record(2, command=0x12), "its SCSI command is not a read, write or cache synchronisation"),
        (record(2, lbn=1 << 60), "its address is beyond 2^63 bytes"),
        (record(2, time_us=1 << 63), "its time is beyond 2^62 us"),
    ],
)
def test_malformed_records_of_vscsi(tmp_path: Path, bad: bytes, reason: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(record(2) * 100 + bad + record(2))
    with pytest.raises(UserError) as caught:
        import_trace(path, tmp_path / "t.parquet", format_name="vscsi")
    assert f"record 101 is malformed: {reason}" in str(caught.value)
    report = import_trace(path, tmp_path / "t.parquet", format_name="vscsi", max_malformed=1)
    assert (report.rows, report.malformed_first) == (101, [{"record": 101, "reason": reason}])


def test_a_truncated_vscsi_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(record(2) * 3 + record(2)[:-1])
    with pytest.raises(UserError, match="record 4 is malformed: is cut off after 39 of 40 bytes"):
        import_trace(path, tmp_path / "t.parquet")


def test_a_time_span_above_146_years_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "alibaba", "1,R,0,512,0", "1,R,0,512,4611686018427388")
    with pytest.raises(UserError, match="the time of line 2 is more than 146 years after the first"):
        import_trace(path, tmp_path / "t.parquet")
