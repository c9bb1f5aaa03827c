"""Printed values: an invalid table is refused with its line, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from bounded import bounded_memory

from drivelab.core.errors import UserError
from drivelab.imported import printed
from drivelab.imported.tables import tables_of


def read(folder: Path, text: str, **more: str) -> list[printed.Recording]:
    (folder / "some_values.csv").write_text(text)
    return printed.read(folder / "some_values.csv", "a", **more)


def test_options_give_unit_and_pattern(tmp_path: Path) -> None:
    recording = read(tmp_path, "block_size,read\n1024k,500\n", unit="MB/s", pattern="random")[0]
    row = tables_of([recording])["summary"].iloc[0]
    assert (row["cell_label"], row["metric"], row["unit"]) == ("RND 1024KiB 100/0", "bandwidth_mib_s", "MiB/s")
    assert row["value"] == pytest.approx(500e6 / 2**20)
    assert row["evidence"] == ["a/imported-values/some-values/some_values.csv"]
    assert (row["n"], list(row["samples"])) == (1, [row["value"]])
    assert row[["spread_low", "spread_high"]].isna().all()


def test_printed_window_is_judged_again(tmp_path: Path) -> None:
    text = "test,variable,unit,v1,v2,v3,v4,v5\nx,4k random write,IOPS,100,100,100,100,130\n"
    tables = tables_of(read(tmp_path, text))
    window = tables["steady_state"].iloc[0]
    assert not window["reached"]
    assert (window["window_start"], window["window_end"]) == (1, 5)
    assert tables["summary"]["verdict"].item() == "not steady"
    assert tables["summary"][["spread_low", "spread_high"]].values.tolist() == [[100, 130]]


BAD = {
    "block_size,0/100\n4k,100\n": "give --unit",
    "block_size,read\n4k,100\n": "give --unit",
    "block_size,read_iops\n4k,\n": "line 2 has '' instead of a positive number",
    "block_size,read_iops\n4k,100\n8k,-3\n": "line 3 has '-3'",
    "block_size,read_iops\n4k,nan\n": "line 2 has 'nan'",
    "block_size,read_iops\n4k,1_000\n": "line 2 has '1_000' instead of a positive number",
    "block_size_kib,read_iops\n1_0,100\n": "line 2 has '1_0' instead of a block size",
    "block_size_kib,read_iops\n0,100\n": "line 2 has '0' instead of a block size",
    "test,variable,unit,round_labels,v1\nx,4k random read,us,a,5\n": "line 2 has 'a' instead of a whole number",
    "parameter,unit,threads,queue_depth,1TB\nread,IOPS,1,1.5,5\n": "line 2 has '1.5' instead of a whole number",
    "block_size,read_iops\nfour,100\n": "line 2 has 'four' instead of a block size",
    "block_size,speed\n4k,100\n": "a column 'speed'",
    "block_size,60/35\n4k,100\n": "a column '60/35'",
    "statistic,block_size,read_iops\nmedian,4k,100\n": "instead of mean or max",
    "name,value\na,1\n": "unknown header",
    "block_size,read_iops\n": "no line of values",
    "parameter,unit,threads,queue_depth,big\nread,IOPS,1,1,5\n": "a column 'big', which is not a capacity",
    "parameter,unit,threads,queue_depth,1TB\nread,furlongs,1,1,5\n": "unit 'furlongs'",
    "test,variable,unit,v1\nx,latency,us,5\n": "the variable 'latency'",
    "test,variable,unit,round_labels,v1,v2\nx,4k random read,us,1 2 3,5,5\n": "different numbers of rounds and values",
    "block_size,read_iops\n4k,100\n8k,90\n4096,110\n": "line 4 repeats RND 4KiB 100/0 iops of line 2",
    "block_size,read_iops,read_iops\n4k,100,110\n": "the column 'read_iops' twice",
    "block_size,read_iops\n4k,100,110\n": "line 2 has more values than the header has columns",
    "test,variable,unit,v1\nx,4k random read,us,5\ny,4k random read,us,6\n": "line 3 repeats RND 4KiB 100/0 mean",
    "parameter,unit,threads,queue_depth,1TB\nread,IOPS,1,1,5\nread,KIOPS,1,1,6\n": "line 3 repeats read T1Q1 iops",
}
CONTRADICTED = {
    ("block_size,read\n4k,100\n", "parsecs"): "'parsecs' is not a unit",
    ("block_size,read_mb_s\n4k,100\n", "IOPS"): "column read_mb_s is in MB/s, another quantity than IOPS",
    ("block_size,read_iops\n4k,100\n", "us"): "column read_iops is in IOPS",
    (
        "statistic,block_size,0/100\nmean,4k,100\n",
        "IOPS",
    ): "line 2 has the statistic 'mean', which is for latencies, with iops",
    ("test,variable,unit,v1\nx,4k random read,us,5\n", "ms"): "gives its own units and patterns; leave out --unit",
    ("parameter,unit,threads,queue_depth,1TB\nread,IOPS,1,1,5\n", "KIOPS"): "leave out --unit",
}


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        *((text, None, reason) for text, reason in BAD.items()),
        *((text, unit, reason) for (text, unit), reason in CONTRADICTED.items()),
    ],
)
def test_invalid_table_or_unit_is_refused(tmp_path: Path, text: str, unit: str | None, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as error:
        read(tmp_path, text, **({} if unit is None else {"unit": unit}))
    assert unit is not None or "some_values.csv" in str(error.value)


def test_a_unit_of_the_same_quantity_corrects_a_column(tmp_path: Path) -> None:
    """Many sources print MiB/s and call it MB/s."""
    recording = read(tmp_path, "block_size,read_mb_s\n4k,100\n", unit="MiB/s")[0]
    assert tables_of([recording])["summary"]["value"].item() == 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("block_size,read\n" + "4k,1\n" * 10_001, "has more than 200 columns or 10,000 lines"),
        ("block_size" + ",65/35" * 200 + "\n" + "4k\n" * 100_000, "has more than 200 columns or 10,000 lines"),
        ("block_size,read\n" + "4k,1\n" * 300_000, "has more than 1 MiB"),
        ("block_size,read\n4k," + "1" * 200_000 + "\n", "cannot be read .field larger than field limit"),
    ],
)
def test_a_table_without_limit_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with bounded_memory(32 << 20), pytest.raises(UserError, match=reason):
        read(tmp_path, text)
