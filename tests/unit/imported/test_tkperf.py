"""Import of TKperf's XML: every value in its place, and invalid results refused by name."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import import_origins as origins
import pytest
from bounded import bounded_memory

from drivelab.core.errors import UserError
from drivelab.imported import tkperf
from drivelab.imported.tables import tables_of, write_tables
from drivelab.tables import io


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tables of all four tests, read back from the files."""
    folder = tmp_path_factory.mktemp("tkperf")
    source = origins.tkperf(folder / "s4600.xml")
    recordings = tkperf.read(source, "s4600")
    write_tables(tables_of(recordings), recordings, source, folder)
    return {path.stem: io.read(path, path.stem) for path in (folder / "tables").iterdir()}


def test_every_cell_is_at_its_round_mix_and_block(tables: dict[str, Any]) -> None:
    cells = tables["cells"][tables["cells"]["measurement"] == "imported-tkperf-iops"]
    assert len(cells) == len(origins.WRITES_4K) * len(origins.IOPS_MIXES) * len(origins.IOPS_BLOCKS)
    for row in cells.itertuples():
        expected = origins.iops(origins.WRITES_4K[row.round - 1], row.read_share_pct, row.block_size_bytes)
        assert row.iops == pytest.approx(expected)
        assert row.bandwidth_mib_s == pytest.approx(expected * row.block_size_bytes / 2**20)
    assert set(cells["threads"]) == {2}
    assert set(cells["queue_depth"]) == {16}
    assert set(cells["directory"]) == {"s4600.xml"}


def test_window_equals_that_of_tkperf(tables: dict[str, Any]) -> None:
    windows = tables["steady_state"].set_index("measurement")
    window = windows.loc["imported-tkperf-iops"]
    assert window["reached"]
    assert (window["window_start"], window["window_end"]) == (2, 6)
    assert window["average"] == pytest.approx(sum(origins.WRITES_4K[1:]) / 5)
    rate = windows.loc["imported-tkperf-throughput"]
    assert rate["variable"] == "SEQ 1024KiB 0/100"
    assert rate["average"] * 1024 == pytest.approx(sum(origins.WRITES_1024K_KIB_S) / 5)
    assert windows.loc["imported-tkperf-latency", "average"] == pytest.approx(sum(origins.LATENCIES_US) / 5)


def test_reads_and_writes_of_the_throughput_test_are_separate(tables: dict[str, Any]) -> None:
    cells = tables["cells"]
    first = cells[(cells["measurement"] == "imported-tkperf-throughput") & (cells["round"] == 1)]
    at = first.set_index(["read_share_pct", "block_size_bytes"])["bandwidth_mib_s"]
    assert at[100, 1048576] == pytest.approx(2 * at[0, 1048576])
    assert at[0, 512] == pytest.approx(origins.WRITES_1024K_KIB_S[0] // 5 / 1024)


def test_the_largest_latency_of_a_mix_is_unknown(tables: dict[str, Any]) -> None:
    cells = tables["cells"]
    cells = cells[cells["measurement"] == "imported-tkperf-latency"]
    mixed = cells["read_share_pct"] == 65
    assert cells.loc[mixed, "max_latency_us"].isna().all()
    assert (cells.loc[~mixed, "max_latency_us"] == 1000.0 * cells.loc[~mixed, "round"]).all()
    assert cells["iops"].isna().all()


def test_unknown_facts_have_no_value(tables: dict[str, Any]) -> None:
    summary = tables["summary"]
    metrics = summary.groupby("measurement")["metric"].agg(set)
    assert metrics["imported-tkperf-iops"] == {"iops", "bandwidth_mib_s"}
    assert metrics["imported-tkperf-latency"] == {"mean_latency_us"}
    assert tables["hosts"].empty or tables["hosts"]["cores"].isna().all()
    conditions = tables["conditions"].set_index(["measurement", "facet"])["value"]
    assert conditions["imported-tkperf-iops", "serial"] == "PHYM1"
    assert conditions["imported-tkperf-iops", "capacity"] == "960,197,000,000 B"
    assert conditions["imported-tkperf-iops", "fio"] == "2.2.10"
    assert conditions["imported-tkperf-iops", "purge"] == "not recorded"


def test_write_saturation_settles_at_the_end(tables: dict[str, Any]) -> None:
    cells = tables["cells"]
    cells = cells[cells["measurement"] == "imported-tkperf-write-saturation"]
    assert set(cells["kind"]) == {"soak"}
    assert len(cells) == 100
    assert cells["bytes_written_total"].iloc[-1] == (20 * 90000 + 80 * 20000) * 60 * 4096
    summary = tables["summary"]
    value = summary[(summary["measurement"] == "imported-tkperf-write-saturation") & (summary["metric"] == "iops")]
    assert value["value"].item() == pytest.approx(20000)


def test_the_write_cliff_is_found(tables: dict[str, Any]) -> None:
    (row,) = tables["saturation"].to_dict("records")
    assert row["cliff"]
    assert row["cliff_time_s"] == pytest.approx(20 * 60, abs=60)
    assert (row["iops_before"], row["iops_after"]) == pytest.approx((90000, 20000))
    assert row["level_iops"] == pytest.approx(20000)


ABOUT = {
    "nvme": "sn        : PHLN1\nmn        : INTEL SSDPE2KX010T8\nfr        : VDV10131\ntnvmcap   : 1000204886016\n"
    "Device Interface: nvme\nDevice Logical Sector Size: 512\nDevice Physical Sector Size: 512",
    "udevadm": "udevadm Device Info section\nE: ID_MODEL=Ultra\nE: ID_SERIAL=SD_Ultra_4C53\nE: ID_SERIAL_SHORT=4C53\n"
    "Device Size (bytes): 30752636928\nDevice Logical Sector Size: 512\n",
}


@pytest.mark.parametrize("tool", ABOUT)
def test_drive_facts_from_other_tools(tmp_path: Path, tool: str) -> None:
    path = origins.tkperf(tmp_path / "x.xml", ("lat",), devinfo=ABOUT[tool])
    drive = tkperf.read(path, "a")[0].facts["drive"]
    assert drive == {
        "nvme": {"model": "INTEL SSDPE2KX010T8", "serial": "PHLN1", "firmware": "VDV10131", "logical_block_bytes": 512},
        "udevadm": {
            "model": "Ultra", "serial": "4C53", "capacity_bytes": 30752636928, "logical_block_bytes": 512,
        },
    }[tool]  # fmt: skip


def test_drive_with_4096_byte_sectors_has_no_512(tmp_path: Path) -> None:
    matrix = [[[100.0] * 7] * 7] * 5
    recording = tkperf.read(origins.tkperf(tmp_path / "x.xml", ("iops",), iops_roundmat=matrix), "a")[0]
    assert {row["block_size_bytes"] for row in recording.cells} == set(origins.IOPS_BLOCKS) - {512}


def test_file_without_date_needs_an_option(tmp_path: Path) -> None:
    path = origins.tkperf(tmp_path / "x.xml", ("iops",), testdate=None)
    with pytest.raises(UserError, match="--date"):
        tkperf.read(path, "a")
    assert str(tkperf.read(path, "a", "2017-10-12")[0].cells[0]["started"]) == "2017-10-12 00:00:00+00:00"


BAD = {
    "zero": ({"iops_roundmat": [[[0.0] * 8] * 7] * 5}, "0.0 for RND 1024KiB 100/0 in round 1"),
    "NaN": ({"iops_roundmat": [[[float("nan")] * 8] * 7] * 5}, "nan for RND"),
    "blocks": (
        {"iops_roundmat": [[[1.0] * 6] * 7] * 5},
        "has 6 block sizes in <roundmat> instead of 8, or 7 without 512 bytes",
    ),
    "mixes": ({"iops_roundmat": [[[1.0] * 8] * 6] * 5}, "the wrong number of values for mixes"),
    "no rounds": ({"iops_roundmat": []}, "no values for <roundmat>"),
    "hard disk": ({"iops_stdyrounds": None}, "hard disk"),
    "run time of 0": ({"iops_runtime": 0}, "has 0 in <runtime> instead of a number above 0"),
    "negative run time": ({"iops_runtime": -60}, "has -60 in <runtime>"),
    "run time as text": ({"iops_runtime": "long"}, "no whole number in <runtime>, but 'long'"),
    "half a thread": ({"iops_numjobs": 1.5}, "no whole number in <numjobs>, but 1.5"),
    "no depth": ({"iops_iodepth": None}, "no whole number in <iodepth>"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_result_is_refused(tmp_path: Path, name: str) -> None:
    changed, reason = BAD[name]
    path = origins.tkperf(tmp_path / "bad.xml", ("iops",), **changed)
    with pytest.raises(UserError, match=reason) as error:
        tkperf.read(path, "a")
    assert "bad.xml: <iops>" in str(error.value)


def _without(matrix: list[Any], round_index: int, mix: int, block: int) -> list[Any]:
    """Return a matrix without one value."""
    changed = [[list(row) for row in rows] for rows in matrix]
    del changed[round_index][mix][block]
    return changed


@pytest.mark.parametrize(("round_index", "mix", "block"), [(0, 0, 0), (3, 2, 1), (5, 6, 7)])
def test_row_without_a_value_is_refused(tmp_path: Path, round_index: int, mix: int, block: int) -> None:
    matrix = _without([[[100.0] * 8] * 7] * 6, round_index, mix, block)
    share = origins.IOPS_MIXES[mix]
    reason = f"has 7 values for the mix {share}/{100 - share} of round {round_index + 1}, but 8 in the other rows of"
    with pytest.raises(UserError, match=reason):
        tkperf.read(origins.tkperf(tmp_path / "x.xml", ("iops",), iops_roundmat=matrix), "a")


@pytest.mark.parametrize(("sector", "blocks"), [(512, 4), (4096, 5)])
def test_block_sizes_must_fit_the_sector_size(tmp_path: Path, sector: int, blocks: int) -> None:
    """The rows of throughput form one list, so only the sector size reveals a missing row."""
    about, lists = f"Device Logical Sector Size: {sector}\n", [[[494806] * 5] * 2] * blocks
    with pytest.raises(UserError, match=f"has {blocks} block sizes .*does not fit a drive with {sector}-byte sectors"):
        tkperf.read(origins.tkperf(tmp_path / "x.xml", ("tp",), tp_roundmat=lists, devinfo=about), "a")


@pytest.mark.parametrize("text", ["no XML", "<a><b/></a>"])
def test_other_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.xml").write_text(text)
    with pytest.raises(UserError, match=r"x\.xml"):
        tkperf.read(tmp_path / "x.xml", "a")


BOMB = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">%s]><SsdTest><testdate>&j;</testdate></SsdTest>"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB % "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise("abcdefghij")),
         "has a document type, which TKperf never writes"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "has a document type, which TKperf never writes"),
        ("<a>" * 1_500_000, "has more than 4 MiB"),
        ("<SsdTest><iops><numjobs>" + "[" * 100_000 + "</numjobs></iops></SsdTest>", "does not give the date"),
        ("<SsdTest><testdate>" + "[" * 100_000 + "</testdate><iops/></SsdTest>", "has no valid JSON in <testdate>"),
    ],
)  # fmt: skip
def test_xml_without_limit_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.xml").write_text(text)
    with bounded_memory(64 << 20), pytest.raises(UserError, match=reason):
        tkperf.read(tmp_path / "a.xml", "a")
