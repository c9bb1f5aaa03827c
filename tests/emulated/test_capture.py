"""Real blktrace, which a locked-down host refuses: both back ends and the decoder against blkparse and fio."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from emulation.machine import Machine
from whole_traces import read_trace

from drivelab.trace.capturing import ring
from drivelab.trace.decode import decode

pytestmark = pytest.mark.emulated

DEVICE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-NATIVE-4K"


@dataclass(frozen=True)
class Captured:
    """The captures from the machine."""

    base: Path
    """Base name of a complete trace; see guest/trace.py for the requests."""
    lost: list[dict[str, int]]
    """Losses of the complete capture, of a capture whose blktrace was killed, and of the next capture."""


@pytest.fixture(scope="module")
def captured(bench: Machine, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    directory = tmp_path_factory.mktemp("trace")
    lost = bench.run(f"python3 /guest/trace.py {DEVICE}").json()
    for name, folder in (("trace", directory), ("ring", directory / "ring")):
        (directory / f"{name}.tar").write_bytes(bench.read(f"/tmp/{name}.tar"))
        with tarfile.open(directory / f"{name}.tar") as archive:
            archive.extractall(folder, filter="data")
    return Captured(directory / "trace", lost)


@pytest.fixture(scope="module")
def summary(captured: Captured) -> dict[str, Any]:
    return decode(captured.base, captured.base.with_name("trace.parquet"))


@pytest.fixture(scope="module")
def table(captured: Captured, summary: dict[str, Any]) -> pd.DataFrame:
    return read_trace(captured.base.with_name("trace.parquet"))[0].to_pandas()


def test_nothing_is_lost(captured: Captured, summary: dict[str, Any]) -> None:
    assert captured.lost[0] == {}
    assert summary["lost"] == {}
    assert summary["unmatched"] == {}


def test_a_killed_blktrace_is_reported_and_the_next_works(captured: Captured) -> None:
    _, killed, again = captured.lost
    assert killed.keys() >= {"blktrace_failed", "end"}
    assert again == {}


def test_events_equal_those_of_blkparse(summary: dict[str, Any], captured: Captured) -> None:
    done = subprocess.run(
        ["blkparse", "-q", "-i", captured.base.name, "-f", "event %a\n"],
        cwd=captured.base.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    by_blkparse = Counter(re.findall(r"^event (\S+)$", done.stdout, re.MULTILINE))
    ours = summary["events_by_action"]
    assert {action: ours.get(action, 0) for action in "QGDCMFX"} == {
        action: by_blkparse[action] for action in "QGDCMFX"
    }


def test_requests_equal_those_of_fio_and_blkdiscard(table: pd.DataFrame, captured: Captured) -> None:
    [job] = json.loads(captured.base.with_name("fio.json").read_text())["jobs"]
    assert table["complete_ns"].notna().all()
    by_fio = table[table["process"] == "fio"]
    for operation in ("read", "write"):
        assert (by_fio["operation"] == operation).sum() == job[operation]["total_ios"]
    assert (by_fio["operation"] == "flush").sum() == job["sync"]["total_ios"] > 0
    discards = table[table["operation"] == "discard"]
    assert discards[["offset_bytes", "length_bytes"]].to_numpy().tolist() == [[8 << 20, 1 << 20]]


def test_pages_that_merge_are_requests_of_one_dispatch(table: pd.DataFrame) -> None:
    pages = table[(table["operation"] == "write") & table["offset_bytes"].between(16 << 20, (18 << 20) - 1)]
    assert pages["length_bytes"].sum() == 2 << 20
    assert pages["dispatch_id"].nunique() < len(pages)


def test_a_split_request_is_one_row_of_many_pieces(table: pd.DataFrame, summary: dict[str, Any]) -> None:
    assert summary["events_by_action"]["X"] > 0
    large = table[(table["operation"] == "write") & table["offset_bytes"].between(24 << 20, (26 << 20) - 1)]
    assert large["length_bytes"].sum() == 2 << 20
    assert large["pieces"].sum() == (2 << 20) // (64 << 10)


def through_ftrace(folder: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return summary and requests of the ftrace capture of the same work."""
    facts = json.loads((folder / "capture.json").read_text())
    for pages in folder.glob("pages.*"):
        with (folder / f"trace.blktrace.{pages.suffix[1:]}").open("wb") as out:
            ring.convert(pages, facts["page_bytes"], facts["number"], out)
    summary = decode(folder, folder / "trace.parquet")
    return summary, read_trace(folder / "trace.parquet")[0].to_pandas()


def of_the_work(table: pd.DataFrame) -> Counter[tuple[Any, ...]]:
    """Count the requests of the work, without the reads of udev, which looks for partitions after a drive is closed.

    Process names are left out: the kernel reports a name to blktrace only once, in the first interrupt with the
    process, which may be before the process executes the program that makes the requests.
    """
    columns = ["operation", "offset_bytes", "length_bytes", "sync", "fua", "preflush", "pieces"]
    chosen = (table["process"] == "fio") | (table["operation"] != "read")
    return Counter(map(tuple, table.loc[chosen, columns].astype(object).to_numpy()))


def test_both_back_ends_have_the_same_requests(table: pd.DataFrame, captured: Captured) -> None:
    summary, other = through_ftrace(captured.base.with_name("ring"))
    assert (summary["lost"], summary["unmatched"]) == ({}, {})
    ours, theirs = map(of_the_work, (table, other))
    assert ours == theirs
    assert sum(ours.values()) > 600
