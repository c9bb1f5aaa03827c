"""What fio does with jobs, which the table of outcomes has, and the content that it writes."""

from __future__ import annotations

import configparser
import resource
import shutil
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.fio.consistency import contradiction
from drivelab.fio.document import documents, from_document, output_text
from drivelab.fio.job import job_text, refuse_submission
from drivelab.fio.result import by_workload, read_result
from drivelab.fio.series import read_series
from drivelab.plan.cell import Cell

MIB = 1 << 20
RANGE = Cell("random", 0, 4096, threads=1, queue_depth=1, block_size_max_bytes=MIB, volume_bytes=400 * MIB)


def options(cell: Cell) -> dict[str, str]:
    text = job_text(cell, "/dev/x", "psync", 64 * MIB, 512, 7)
    return dict(line.split("=", 1) for line in text.splitlines()[1:])


def test_nothing_polls_for_commands_of_an_older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = Cell("random", 100, 4096, threads=1, queue_depth=16, runtime_s=1.0, nvme=True, polled=True)
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(release="6.4.0"))
    with pytest.raises(UserError, match=r"polls for NVMe commands, which can crash this kernel\. Use"):
        refuse_submission(polled, "io_uring", "drive 'a'", polls=True)
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(release="6.5.0"))
    refuse_submission(polled, "io_uring", "drive 'a'", polls=True)


def test_how_ios_are_submitted_is_the_cells_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Cell("random", 100, 4096, threads=2, queue_depth=16, runtime_s=1.0)
    chosen = replace(usual, registered=True, batch=8, polled=True)
    text = job_text(chosen, "/dev/x", "io_uring", 64 * MIB, 512, 7)
    added = dict(line.split("=", 1) for line in text.splitlines()[1:]).items() - options(usual).items()
    assert dict(added) == {
        "ioengine": "io_uring", "registerfiles": "1", "fixedbufs": "1", "hipri": "1", "iodepth_batch": "8",
        "iodepth_batch_complete_min": "1", "iodepth_batch_complete_max": "8",
    }  # fmt: skip
    assert chosen.label == "RND 4KiB 100/0, registered, batches of 8, polled T2Q16"
    assert usual.to_mapping().keys().isdisjoint({"registered", "batch", "polled", "reuse_buffers"})
    refuse_submission(usual, "libaio", "drive 'a'", polls=False)
    refuse_submission(chosen, "io_uring", "drive 'a'", polls=True)
    with pytest.raises(
        UserError, match=r"^drive 'a': cell .* needs io_uring, .* remove 'registered', 'polled' and 'nvme'"
    ):
        refuse_submission(chosen, "libaio", "drive 'a'", polls=True)
    limit_bytes = 2 * 2 * 16 * 4096 - 1  # two threads, two cells
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit_bytes, limit_bytes))
    refuse_submission(chosen, "io_uring", "drive 'a'", polls=True, may_lock=True)
    with pytest.raises(UserError, match=r"^drive 'a': cell .* registers buffers of up to 256 KiB, .* \(ulimit -l\)"):
        refuse_submission(chosen, "io_uring", "drive 'a'", polls=True, may_lock=False)
    with pytest.raises(UserError, match=r"^drive 'a' has no poll queues, but .* Load the nvme module"):
        refuse_submission(chosen, "io_uring", "drive 'a'", polls=False)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_draws_every_size_of_a_range_equally_often(tmp_path: Path) -> None:
    """About 800 writes: sizes and offsets are multiples of 4 KiB up to 1 MiB, half of them below the middle."""
    target, log = tmp_path / "target", tmp_path / "log"
    with target.open("wb") as file:
        file.truncate(64 * MIB)
    text = job_text(RANGE, str(target), "null", 64 * MIB, 512, 7).replace("direct=1\n", "")
    job = tmp_path / "job.fio"
    job.write_text(text + f"write_iolog={log}\n")
    subprocess.run(["fio", str(job)], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    rows = [line.split() for line in log.read_text().splitlines() if " write " in line]
    offsets, lengths = ([int(row[column]) for row in rows] for column in (3, 4))
    assert len(rows) > 500
    assert all(length % 4096 == 0 and 4096 <= length <= MIB for length in lengths)
    assert all(offset % 4096 == 0 for offset in offsets)
    assert any(offset % length for offset, length in zip(offsets, lengths, strict=True))
    assert max(offset + length for offset, length in zip(offsets, lengths, strict=True)) <= 64 * MIB
    below = sum(length <= MIB // 2 for length in lengths) / len(lengths)
    assert 0.43 < below < 0.57  # four standard deviations of 800 tosses
    assert sum(lengths) / len(lengths) == pytest.approx((4096 + MIB) / 2, rel=0.08)


def sections(cell: Cell) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(job_text(cell, "/dev/x", "psync", 64 * MIB, 512, 7))
    return {name: dict(parser[name]) for name in parser.sections()}


BESIDE = {"pattern": "sequential", "read_share": 100, "block_size_bytes": 65536, "threads": 2, "queue_depth": 8}
TWO = Cell("random", 0, 4096, threads=3, queue_depth=2, runtime_s=2.5, beside=BESIDE)


def fio_run(cell: Cell, folder: Path, *, engine: str = "psync") -> Path:
    """Run a cell on a file, leave the evidence as the stages do, and return the file."""
    target = folder / "target"
    with target.open("wb") as file:
        file.truncate(64 * MIB)
    text = job_text(cell, str(target), engine, 64 * MIB, 512, 7).replace("direct=1\n", "")
    (folder / "job.fio").write_text(text)
    command = ["fio", "--output-format=json+", "job.fio"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=60)
    (folder / "fio.json").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    (folder / "exit_code").write_text(str(done.returncode))
    return target


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_the_direction_identifies_two_workloads_in_fio(tmp_path: Path) -> None:
    """The bytes identify the workload of a direction; each thread of both has a log."""
    fio_run(TWO, tmp_path, engine="null")
    result = read_result(tmp_path, TWO)
    assert result.read.bytes == result.read.ios * 65536 > 0
    assert result.write.bytes == result.write.ios * 4096 > 0
    assert min(result.read.runtime_s, result.write.runtime_s) >= 0.9 * TWO.runtime_s
    assert result.thread_time_s >= 0.9 * TWO.total_threads * TWO.runtime_s
    assert len(list(tmp_path.glob("series_iops.*.log"))) == TWO.total_threads
    rows = read_series(tmp_path).rows
    assert {row["direction"] for row in rows} == {"read", "write"}
    assert all(row["iops"] > 0 for row in rows)


MIXED = {"pattern": "random", "read_share": 65, "block_size_bytes": 8192, "threads": 2, "queue_depth": 2}
TRIMS = {"pattern": "sequential", "read_share": 0, "operation": "trim", "block_size_bytes": 65536, "threads": 1,
         "queue_depth": 2, "rate_iops": 200.0}  # fmt: skip


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_reports_several_workloads_apart(tmp_path: Path) -> None:
    cell = replace(TWO, beside=(BESIDE, MIXED, TRIMS))
    assert list(sections(cell)) == ["cell", "beside", "beside-2", "beside-3"]
    assert sections(cell)["beside-3"]["rate"] == f",,{200 * 65536}"
    fio_run(cell, tmp_path, engine="null")
    result = read_result(tmp_path, cell)
    writes, reads, mixed, trims = by_workload(result, cell)
    assert (writes.read.ios, reads.write.ios, mixed.trim.ios) == (0, 0, 0)
    assert mixed.read.ios / mixed.ios == pytest.approx(0.65, abs=0.05)
    assert mixed.bytes == mixed.ios * 8192
    assert 0 < trims.ios <= 1.02 * 200 * TWO.runtime_s, "a thread that waits for a CPU loses I/Os, but gains none"
    assert trims.bytes == trims.ios * 65536
    assert result.ios == writes.ios + reads.ios + mixed.ios
    assert contradiction(result, cell) is None


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_keeps_to_a_rate(tmp_path: Path) -> None:
    cell = Cell("random", 70, 4096, threads=3, queue_depth=4, runtime_s=1.0, rate_iops=500.0)
    fio_run(cell, tmp_path, engine="null")
    result = read_result(tmp_path, cell)
    assert 0 < result.ios <= 1.02 * 500 * result.runtime_s, "a busy host loses I/Os, but gains none"
    assert result.read.ios / result.ios == pytest.approx(0.7, abs=0.05)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("entropy", [0.0, 0.46, 1.0])
def test_fio_writes_blocks_of_the_entropy(tmp_path: Path, entropy: float) -> None:
    """Every page has the share of nonzero data (fio's random data has some zeros), and no two pages are equal."""
    cell = Cell("sequential", 0, 65536, threads=1, queue_depth=1, volume_bytes=4 * MIB, entropy=entropy)
    data = fio_run(cell, tmp_path).read_bytes()[: 4 * MIB]
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert all(1 - page.count(0) / 4096 == pytest.approx(entropy, abs=0.15) for page in pages)
    assert 1 - data.count(0) / len(data) == pytest.approx(entropy, abs=0.02)
    assert len(zlib.compress(data, 1)) / len(data) == pytest.approx(entropy, abs=0.03)
    assert len(set(pages)) == (len(pages) if entropy else 1)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_synchronous_writes_append_to_a_file(tmp_path: Path) -> None:
    """The file grows by every write."""
    cell = Cell("sequential", 0, 4096, threads=1, queue_depth=1, volume_bytes=64 * 4096, synchronous=True)
    target = tmp_path / "target"
    target.write_bytes(bytes(4096))
    text = job_text(cell, str(target), "io_uring", 64 * MIB, 4096, 7, file=True)
    (tmp_path / "job.fio").write_text(text)
    command = ["fio", "--output-format=json+", "--output=fio.json", "job.fio"]
    assert subprocess.run(command, cwd=tmp_path, check=False, timeout=60).returncode == 0
    assert target.stat().st_size == 65 * 4096
    result = from_document(next(documents(output_text(tmp_path))))
    assert result.write.ios == 64
    assert result.options["sync"] == "sync"
    assert result.options["direct"] == "0"
    assert cell.workload == "SEQ 4KiB 0/100, fsync"


CAPACITY = 8 * MIB


def written(
    folder: Path, block_size_bytes: int, entropy: float | None = None, *, depth: int = 32, **more: Any
) -> bytes:
    """Return the file's content after one pass of writes with `depth` blocks in flight."""
    target = folder / "target"
    target.write_bytes(bytes(CAPACITY))
    cell = Cell("sequential", 0, block_size_bytes, threads=1, queue_depth=depth, volume_bytes=CAPACITY,
                entropy=entropy, **more)  # fmt: skip
    text = job_text(cell, str(target), "libaio", CAPACITY, 512, 7).replace("direct=1\n", "")
    (folder / "job.fio").write_text(text)
    done = subprocess.run(["fio", "job.fio"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target.read_bytes()


def compressed(content: bytes) -> float:
    """Return the compressed share of the length, with a window of 32 KiB."""
    return len(zlib.compress(content, 6)) / len(content)


@pytest.mark.parametrize(
    ("block_size_bytes", "least"), [(512, 0.99), (4096, 0.99), (32768, 0.99), (65536, 0.94), (MIB, 0.94)]
)
def test_content_is_incompressible_and_no_page_repeats(tmp_path: Path, block_size_bytes: int, least: float) -> None:
    content = written(tmp_path, block_size_bytes)
    assert compressed(content) > least
    pages = [content[at : at + 4096] for at in range(0, CAPACITY, 4096)]
    assert len(set(pages)) == len(pages)


@pytest.mark.parametrize("depth", [1, 2, 32])
@pytest.mark.parametrize("block_size_bytes", [512, 4096])
def test_no_page_repeats_if_small_blocks_reuse_buffers(tmp_path: Path, block_size_bytes: int, depth: int) -> None:
    content = written(tmp_path, block_size_bytes, depth=depth, reuse_buffers=True)
    pages = [content[at : at + 4096] for at in range(0, CAPACITY, 4096)]
    assert len(set(pages)) == len(pages)


def test_entropy_is_the_share_that_does_not_compress(tmp_path: Path) -> None:
    assert compressed(written(tmp_path, 4096, entropy=0.5)) == pytest.approx(0.5, abs=0.05)
