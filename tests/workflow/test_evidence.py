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

from drivelab.explore.number_evidence import of_delta, of_value
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


def recomputed(facts: dict[str, Any]) -> float | None:
    """Recompute a value from the raw files; None for percentiles, which are not a simple statistic."""
    outputs = [Path(cell["output"]) for recording in facts["recordings"] for cell in recording["cells"]]
    metric = facts["metric"]
    if metric.startswith("p9"):
        return None
    if facts["statistic"] == "window average":
        return statistics.mean(sums(documents(output)[-1])[metric] for output in outputs)
    if facts["statistic"] == "post-saturation average":
        return of_last_slices(*outputs, 5)[metric]
    if facts["statistic"] == "median of warm runs":
        reports = [json.loads(output.read_text()) for output in outputs]
        of_response = metric == "response_time_us"
        return statistics.median(report["response_us"]["mean"] if of_response else report[metric] for report in reports)
    raise AssertionError(f"no rule for '{facts['statistic']}'")


def test_every_number_of_the_summary_follows_from_its_evidence(
    finished: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.folder)
    published, computed = rows(finished, "summary"), 0
    assert len(published) > 20
    for row in published:
        facts = of_value(row, Path("results"), {})
        assert [recording["recording"] for recording in facts["recordings"]] == list(row["recordings"])
        for recording in facts["recordings"]:
            assert recording["cells"]
            assert recording["checksums"] == "as measured"
            assert recording["drive"]["drive"] == row["drive"]
            assert recording["plan_digest"] in recording["recording"]
            assert all(recording["versions"][name] for name in ("drivelab", "fio", "engine", "kernel"))
            assert all(seal["intact"] for seal in recording["seals"])
            assert all(cell["job"] is None or cell["exit_status"] == 0 for cell in recording["cells"])
        value = recomputed(facts)
        if value is not None:
            assert value == pytest.approx(row["value"], rel=1e-9), row
            computed += 1
        assert facts["agrees"], row
    assert computed >= 24


def test_every_delta_leads_to_both_sides(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    summary = pd.read_parquet("results/tables/summary.parquet")
    deltas = rows(finished, "deltas")
    assert deltas
    for row in deltas:
        facts = of_delta(row, summary, Path("results"), {})
        assert facts["agrees"], row
        for side in ("basis", "comparison"):
            (evidence,) = facts[f"{side}_evidence"]
            assert evidence["value"] == row[f"{side}_value"]
            assert evidence["drive"] == row[side]


def test_the_command_finds_a_number_and_lists_several(finished: Project) -> None:
    done = finished.drivelab("evidence", "op7", "pts-iops", "0/100", "IOPS", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["drive"], facts["cell_label"], facts["metric"]) == ("op7", "RND 4KiB 0/100", "iops")
    (recording,) = facts["recordings"]
    assert recording["alterations"].startswith("class enterprise threads")
    text = finished.drivelab("evidence", "--row", str(facts["row"])).stdout
    for words in (
        "VIRTUAL-OP7",
        "checksums now       as measured",
        "seal, precondition  intact: the drive model",
        "bs=4096",
    ):
        assert words in text
    assert text.count("bs=4096") == 1
    assert "kernel's counters" not in text
    several = finished.drivelab("evidence", "op7", "measurement=pts-iops")
    assert several.returncode == 1
    assert "6 numbers match" in several.stdout
    delta = finished.drivelab("evidence", "--table", "deltas", "op28", "pts-iops", "RND 4KiB 0/100", "iops", "--json")
    assert delta.returncode == 0, delta.stdout
    none = finished.drivelab("evidence", "drive=op9")
    assert none.returncode == 2
    assert "there is drive: op7, op28" in none.stderr
    mistyped = finished.drivelab("evidence", "metrc=iops")
    assert mistyped.returncode == 2
    assert "there is no column 'metrc' in summary; did you mean 'metric'" in mistyped.stderr
    assert finished.drivelab("evidence", "--row", "1000").returncode == 2
    both = finished.drivelab("evidence", "--table", "deltas", "--row", "1").stdout
    assert "results/recordings/op7/" in both
    assert "results/recordings/op28/" in both


def test_altered_evidence_is_reported(copy: Project) -> None:
    row = rows(copy, "summary")[0]
    place = copy.folder / "results/recordings" / row["evidence"][0]
    (place / "fio.json").write_text("{}")
    done = copy.drivelab("evidence", "--row", "1")
    assert done.returncode == 1
    assert re.search(r"checksums now +altered\n +cells/\S+/fio\.json: altered\n", done.stdout)
    assert copy.drivelab("evidence", "--row", "1", "--json").returncode == 1
    (copy.folder / "results/recordings" / row["recordings"][0] / "journal.jsonl").write_text("")
    assert "cannot be read" in copy.drivelab("evidence", "--row", "1").stderr
    for path in sorted((copy.folder / "results/recordings" / row["recordings"][0]).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (copy.folder / "results/recordings" / row["recordings"][0]).rmdir()
    done = copy.drivelab("evidence", "--row", "1")
    assert done.returncode == 2
    assert "restore it from a copy or an archive" in done.stderr


@pytest.mark.parametrize("table", ["summary", "deltas"])
def test_a_number_of_an_edited_table_is_not_confirmed(copy: Project, table: str) -> None:
    """The edited table has its old time, and a checksum that fits."""
    path, column = copy.folder / f"results/tables/{table}.parquet", {"summary": "value", "deltas": "delta_pct"}[table]
    status, data = path.stat(), io.read(path, table)
    io.write(data.assign(**{column: 10 * data[column]}), path, table)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    words = ("op28", "pts-iops", "cell_label=RND 4KiB 0/100", "metric=iops")
    done = copy.drivelab("evidence", "--table", table, *words, "--json")
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert facts["recomputed"] == pytest.approx(facts[column] / 10)
    assert "NOT CONFIRMED: the recordings give" in copy.drivelab("evidence", "--table", table, *words).stdout


def test_a_table_that_was_edited_by_accident_is_not_shown(copy: Project) -> None:
    path = copy.folder / "results/tables/summary.parquet"
    status, data = path.stat(), pq.read_table(path)
    place = data.column_names.index("value")
    pq.write_table(data.set_column(place, data.schema.field(place), pc.multiply(data["value"], 10)), path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for command in (["evidence", "--row", "1"], ["query", "FROM summary"]):
        done = copy.drivelab(*command)
        assert done.returncode == 2
        assert "summary.parquet: was changed after drivelab wrote it" in done.stderr
