"""Every published number leads to its raw evidence, and is what that says."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mini_project import Project

from drivelab.explore.evidence import of_delta, of_value

MIB = 2**20


def rows(project: Project, table: str) -> list[dict[str, Any]]:
    return pd.read_parquet(project.folder / f"results/tables/{table}.parquet").to_dict("records")


def documents(path: Path) -> list[dict[str, Any]]:
    """All JSON documents that fio printed."""
    text, found, at = path.read_text(), [], 0
    while (at := text.find("{", at)) >= 0:
        one, at = json.JSONDecoder().raw_decode(text, at)
        found.append(one)
    return found


def told(document: dict[str, Any]) -> dict[str, float]:
    """Sums over both directions of one job."""
    job = document["jobs"][0]
    both = [job["read"], job["write"]]
    ios = sum(one["total_ios"] for one in both)
    return {
        "iops": sum(one["iops"] for one in both),
        "bandwidth_mib_s": sum(one["bw_bytes"] for one in both) / MIB,
        "mean_latency_us": sum(one["lat_ns"]["mean"] * one["total_ios"] for one in both) / ios / 1000,
        "ios": ios,
        "bytes": sum(one["io_bytes"] for one in both),
        "runtime_s": max(one["runtime"] for one in both) / 1000,
        "latency_us": sum(one["lat_ns"]["mean"] * one["total_ios"] for one in both) / 1000,
    }


def of_last_slices(path: Path, slices: int) -> dict[str, float]:
    """What a soak did in its last slices, each of which ends with a status document, a second apart."""
    totals = [dict.fromkeys(("ios", "bytes", "runtime_s", "latency_us"), 0.0), *map(told, documents(path))]
    if totals[-1]["runtime_s"] - totals[-2]["runtime_s"] < 0.5:  # a last bit is part of the slice before it
        del totals[-2]
    first, last = totals[-1 - slices], totals[-1]
    done = {key: last[key] - first[key] for key in first.keys() & last.keys()}
    return {
        "iops": done["ios"] / done["runtime_s"],
        "bandwidth_mib_s": done["bytes"] / MIB / done["runtime_s"],
        "mean_latency_us": done["latency_us"] / done["ios"],
    }


def recomputed(facts: dict[str, Any]) -> float | None:
    """The value from the raw files alone; None of percentiles, which are no simple statistic."""
    outputs = [Path(cell["output"]) for one in facts["recordings"] for cell in one["cells"]]
    metric = facts["metric"]
    if metric.startswith("p9"):
        return None
    if facts["statistic"] == "window average":
        return statistics.mean(told(documents(one)[-1])[metric] for one in outputs)
    if facts["statistic"] == "post-saturation average":
        return of_last_slices(*outputs, 5)[metric]
    if facts["statistic"] == "median of warm runs":
        return statistics.median(json.loads(one.read_text())[metric] for one in outputs)
    raise AssertionError(f"no rule for '{facts['statistic']}'")


def test_every_number_of_the_summary_is_what_its_evidence_says(
    finished: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.folder)
    published, computed = rows(finished, "summary"), 0
    assert len(published) > 20
    for row in published:
        facts = of_value(row, Path("results"), {})
        assert [one["recording"] for one in facts["recordings"]] == list(row["recordings"])
        for one in facts["recordings"]:
            assert one["cells"]
            assert one["checksums"] == "as measured"
            assert one["drive"]["drive"] == row["drive"]
            assert one["plan_digest"] in one["recording"]
            assert all(one["versions"][name] for name in ("drivelab", "fio", "engine", "kernel"))
            assert all(seal["intact"] for seal in one["seals"])
            assert all(cell["job"] is None or cell["exit_status"] == 0 for cell in one["cells"])
        value = recomputed(facts)
        if value is not None:
            assert value == pytest.approx(row["value"], rel=1e-9), row
            computed += 1
    assert computed >= 24


def test_every_delta_leads_to_both_sides(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    summary = pd.read_parquet("results/tables/summary.parquet")
    found = rows(finished, "deltas")
    assert found
    for row in found:
        facts = of_delta(row, summary, Path("results"), {})
        for side in ("basis", "comparison"):
            (one,) = facts[f"{side}_evidence"]
            assert one["value"] == row[f"{side}_value"]
            assert one["drive"] == row[side]


def test_the_command_finds_a_number_and_lists_several(finished: Project) -> None:
    done = finished.drivelab("evidence", "op7", "pts-iops", "0/100", "IOPS", "--json")
    assert done.returncode == 0, done.stderr
    one = json.loads(done.stdout)
    assert (one["drive"], one["cell_label"], one["metric"]) == ("op7", "RND 4KiB 0/100", "iops")
    (recording,) = one["recordings"]
    assert recording["alterations"].startswith("class enterprise threads")
    text = finished.drivelab("evidence", "--row", str(one["row"])).stdout
    for words in (
        "VIRTUAL-OP7",
        "checksums now       as measured",
        "seal, precondition  intact: nobody wrote",
        "bs=4096",
    ):
        assert words in text
    assert text.count("bs=4096") == 1
    assert "kernel's counters" not in text
    several = finished.drivelab("evidence", "op7", "measurement=pts-iops")
    assert several.returncode == 1
    assert "6 numbers fit" in several.stdout
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


def test_altered_evidence_is_told(copy: Project) -> None:
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
