"""Imports of compressed, damaged, unsorted, multi-volume and unknown files."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace.formats import all_formats
from drivelab.trace.formats.common import importing, source
from drivelab.trace.formats.common.importing import import_trace
from drivelab.trace.parquet_schema import BATCH_ROWS, open_trace


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def lines(times: list[int], volume: int = 1) -> bytes:
    """Return lines in Alibaba's format; the offset is the line's index."""
    return "".join(f"{volume},R,{place},512,{time}\n" for place, time in enumerate(times)).encode()


PACK: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, zstd, bz2.compress)


@pytest.mark.parametrize("pack", PACK)
def test_compression_is_detected_by_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "file.csv"
    half = lines([1, 2, 3])
    path.write_bytes(pack(half) + pack(half.replace(b"1,R", b"1,W")))
    report = import_trace(path, tmp_path / "t.parquet")
    assert report.operations == {"read": 3, "write": 3}


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_compression_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes], damage: str) -> None:
    path = tmp_path / "file.csv"
    data = pack(lines(list(range(100_000))))
    path.write_bytes(data[:-1] if damage == "cut" else data[:-200] + b"\xff" * 100 + data[-100:])
    with pytest.raises(UserError, match=r"file\.csv: cannot be read .*download it again"):
        import_trace(path, tmp_path / "t.parquet", format_name="alibaba")
    assert [left.name for left in tmp_path.iterdir()] == ["file.csv"]


def tar() -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.csv"))
    return gzip.compress(archive.getvalue(), mtime=0)


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (None, None, r"cannot be opened \(No such file"),
        (b"", None, "is empty"),
        (b"\xfd7zXZ\0rest", None, "is an xz file"),
        (tar(), None, "is a tar archive; unpack it"),
        (b"hello\nworld\n", None, r"matches none of the formats alibaba, .*--format"),
        (b"hello\nworld\n", "cvs", "import format 'cvs' is unknown; choose one of alibaba, "),
        (b"\n\n\n", "spc", "has no request of format spc and no malformed lines"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes | None, name: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=reason):
        import_trace(tmp_path / "file", tmp_path / "t.parquet", format_name=name)
    with pytest.raises(UserError, match=r"cannot be opened \(Is a directory"):
        import_trace(tmp_path, tmp_path / "t.parquet")


def test_several_candidates_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"alibaba": all_formats()["alibaba"], "msr": replace(all_formats()["msr"], looks_like=lambda head: True)}
    monkeypatch.setattr("drivelab.trace.formats.all_formats", lambda: both)
    path = tmp_path / "file"
    path.write_bytes(lines([1]))
    with pytest.raises(UserError, match="could be alibaba or msr; name the right format with --format"):
        import_trace(path, tmp_path / "t.parquet")


def test_several_volumes_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(lines([5, 6], 7) + lines([1, 2, 3], 8) + lines([7], 7))
    with pytest.raises(UserError, match=r"has several volumes \(7, 8\); choose one with --volume; .*most requests"):
        import_trace(path, tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()
    report = import_trace(path, tmp_path / "t.parquet", volume="7")
    assert (report.rows, report.other_volumes, report.volume, report.out_of_order) == (3, 3, "7", 0)
    assert read_trace(tmp_path / "t.parquet")[0]["queue_ns"].to_pylist() == [0, 1000, 2000]
    with pytest.raises(UserError, match=r"has no request of volume '9', only of .* 7 \(3\), 8 \(3\); "):
        import_trace(path, tmp_path / "t.parquet", volume="9")
    monkeypatch.setattr(importing, "MOST_VOLUMES", 1)
    with pytest.raises(UserError, match="has more than 1 volumes"):
        import_trace(path, tmp_path / "u.parquet", volume="7")


def test_a_volume_of_a_format_without_volumes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex("28000002") + bytes(36))
    with pytest.raises(UserError, match="its format has no volumes; remove --volume 7"):
        import_trace(path, tmp_path / "t.parquet", volume="7")


def test_unsorted_rows_are_sorted_with_ties_in_file_order(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(lines([50, 40, 40, 60, 40, 55]))
    report = import_trace(path, tmp_path / "t.parquet")
    table, _ = read_trace(tmp_path / "t.parquet")
    assert table["offset_bytes"].to_pylist() == [1, 2, 4, 0, 5, 3]
    assert table["queue_ns"].to_pylist() == [0, 0, 0, 10_000, 15_000, 20_000]
    assert report.out_of_order == 4


def test_a_row_too_late_for_the_window_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "HEAD_BYTES", 1 << 10)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(importing, "WINDOW_ROWS", 100)
    path = tmp_path / "file"
    times = list(range(1000, 3000))
    times[500] = times[450]  # 50 rows late
    path.write_bytes(lines(times))
    report = import_trace(path, tmp_path / "t.parquet")
    assert (report.rows, report.out_of_order) == (2000, 1)
    assert read_trace(tmp_path / "t.parquet")[0]["offset_bytes"].to_pylist()[450:453] == [450, 500, 451]
    times[1500] = times[600]
    path.write_bytes(lines(times))
    with pytest.raises(UserError, match=r"line 1501 is 0\.000[0-9]+ s older than .* sort the file by its time column"):
        import_trace(path, tmp_path / "t.parquet")


def test_many_blocks_fill_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "file"
    rows = 2 * BATCH_ROWS + 5
    path.write_bytes(lines(list(range(rows))))
    assert import_trace(path, tmp_path / "t.parquet").rows == rows
    with open_trace(tmp_path / "t.parquet") as trace:
        batches = list(trace.batches(["queue_ns", "offset_bytes"]))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 5]
    assert batches[2]["queue_ns"].to_pylist() == [1000 * time for time in range(rows - 5, rows)]


def test_unsuitable_outputs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(lines([1]))
    (tmp_path / "t.parquet").mkdir()
    (tmp_path / "link").symlink_to(path)
    for output, reason in (
        (tmp_path / "t.parquet", r"t\.parquet: is a folder"),
        (path / "below" / "t.parquet", "cannot be written"),
        (path, "is also the input and would be lost"),
        (tmp_path / "link", "is also the input and would be lost"),
    ):
        with pytest.raises(UserError, match=reason):
            import_trace(path, output)
    assert path.read_bytes() == lines([1])
