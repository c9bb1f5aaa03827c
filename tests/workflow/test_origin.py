"""Every published number leads to its raw evidence and follows from it."""

from __future__ import annotations

import json
import os
import re
import statistics
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from mini_project import Project

from drivelab.recording.writer import read_journal
from drivelab.tables import io

MIB = 2**20


def rows(project: Project, table: str) -> list[dict[str, Any]]:
    return pd.read_parquet(project.folder / f"results/tables/{table}.parquet").to_dict("records")


def documents(path: Path) -> list[dict[str, Any]]:
    """Return all JSON documents that fio printed."""
    text, parsed, at = path.read_text(), [], 0
    while (at := text.find("{", at)) >= 0:
        document, at = json.JSONDecoder().raw_decode(text, at)
        parsed.append(document)
    return parsed


def sums(document: dict[str, Any]) -> dict[str, float]:
    """Return the sums over both directions of one job."""
    job = document["jobs"][0]
    both = [job["read"], job["write"]]
    ios = sum(direction["total_ios"] for direction in both)
    return {
        "iops": sum(direction["iops"] for direction in both),
        "bandwidth_mib_s": sum(direction["bw_bytes"] for direction in both) / MIB,
        "mean_latency_us": sum(direction["lat_ns"]["mean"] * direction["total_ios"] for direction in both) / ios / 1000,
        "ios": ios,
        "bytes": sum(direction["io_bytes"] for direction in both),
        "runtime_s": max(direction["runtime"] for direction in both) / 1000,
        "latency_us": sum(direction["lat_ns"]["mean"] * direction["total_ios"] for direction in both) / 1000,
    }


def of_last_slices(path: Path, slices: int) -> dict[str, float]:
    """Return the results of a soak's last slices; each ends with a status document, a second apart."""
    totals = [dict.fromkeys(("ios", "bytes", "runtime_s", "latency_us"), 0.0), *map(sums, documents(path))]
    if totals[-1]["runtime_s"] - totals[-2]["runtime_s"] < 0.5:  # a short last slice belongs to the previous one
        del totals[-2]
    first, last = totals[-1 - slices], totals[-1]
    done = {key: last[key] - first[key] for key in first.keys() & last.keys()}
    return {
        "iops": done["ios"] / done["runtime_s"],
        "bandwidth_mib_s": done["bytes"] / MIB / done["runtime_s"],
        "mean_latency_us": done["latency_us"] / done["ios"],
    }


def outputs(results: Path, row: dict[str, Any]) -> list[Path]:
    """Return the output files of the cells, or of the counted replays, behind a value."""
    found = []
    for place in row["evidence"]:
        recording = results / "recordings" / place
        if place not in row["recordings"]:
            found.append(recording / "fio.json")
            continue
        replays = io.read(results / "tables" / place / "replays.parquet", "replays")
        counted = set(replays.loc[replays["counted"], ["step", "trace", "repeat"]].itertuples(index=False, name=None))
        lines = [line for line in read_journal(recording) if line["event"] == "replay"]
        found += [recording / line["directory"] / "report.json" for line in lines
                  if (line["step"], line["trace"], line["repeat"]) in counted]  # fmt: skip
    return found


def recomputed(results: Path, row: dict[str, Any]) -> float | None:
    """Recompute a value from the raw files; None for percentiles, which are not a simple statistic."""
    metric, paths = row["metric"], outputs(results, row)
    if metric.startswith("p9"):
        return None
    if row["statistic"] == "window average":
        return statistics.mean(sums(documents(path)[-1])[metric] for path in paths)
    if row["statistic"] == "post-saturation average":
        return of_last_slices(*paths, 5)[metric]
    if row["statistic"] == "median of warm runs":
        reports = [json.loads(path.read_text()) for path in paths]
        of_response = metric == "response_time_us"
        return statistics.median(report["response_us"]["mean"] if of_response else report[metric] for report in reports)
    raise AssertionError(f"no rule for '{row['statistic']}'")


def test_every_number_of_the_summary_follows_from_its_evidence(finished: Project) -> None:
    published, computed = rows(finished, "summary"), 0
    assert len(published) > 20
    for row in published:
        value = recomputed(finished.folder / "results", row)
        if value is not None:
            assert value == pytest.approx(row["value"], rel=1e-9), row
            computed += 1
    assert computed >= 24


def test_compare_shows_where_a_value_comes_from(finished: Project) -> None:
    sides = ("op7,measurement=pts-iops", "op28,measurement=pts-iops")
    done = finished.drivelab("compare", *sides, "--origin")
    assert done.returncode == 0, done.stderr
    place = done.stdout.index("\npts-iops, RND 4KiB 0/100\n")
    text = done.stdout[place:]
    for side, drive in zip(sides, ("op7", "op28"), strict=True):
        assert re.search(rf"\n  {side}: window average of iops, .*\n    results/recordings/{drive}/pts-iops/", text)
    assert re.search(r"\n    results/\S+-run1: cells/\S+, cells/\S+", text)
    assert re.search(r"\n    job\.fio: \[.*bs=4096", text)
    shown = json.loads(finished.drivelab("compare", *sides, "--origin", "--json").stdout)
    values = {(row["drive"], row["cell_label"], row["metric"]): row for row in shown["origin"]}
    assert {side for side, *_ in values} == set(sides)
    for delta in shown["deltas"]:
        for side in ("basis", "comparison"):
            row = values[delta[side], delta["cell_label"], delta["metric"]]
            assert row["value"] == delta[f"{side}_value"]
            assert row["evidence"]
            assert all((finished.folder / path / "fio.json").is_file() for path in row["evidence"])


def test_compare_does_not_read_an_edited_summary(copy: Project) -> None:
    """The edited table has its old time, and a checksum that fits."""
    path = copy.folder / "results/tables/summary.parquet"
    status, data = path.stat(), io.read(path, "summary")
    io.write(data.assign(value=10 * data["value"]), path, "summary")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    done = copy.drivelab("compare", "op7,measurement=pts-iops", "op28,measurement=pts-iops", "--json")
    true = data.set_index(["drive", "measurement", "cell_label", "metric"])["value"]
    for delta in json.loads(done.stdout)["deltas"]:
        place = (delta["measurement"], delta["cell_label"], delta["metric"])
        assert delta["basis_value"] == pytest.approx(true["op7", *place])


def test_a_table_that_was_edited_by_accident_is_not_shown(copy: Project) -> None:
    path = copy.folder / "results/tables/summary.parquet"
    status, data = path.stat(), pq.read_table(path)
    place = data.column_names.index("value")
    pq.write_table(data.set_column(place, data.schema.field(place), pc.multiply(data["value"], 10)), path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    done = copy.drivelab("query", "FROM summary")
    assert done.returncode == 2
    assert "summary.parquet: was changed after drivelab wrote it" in done.stderr
