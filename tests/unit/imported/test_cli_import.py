"""`drivelab import` on the command line: tables, facts, figures, report and refusals."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import import_origins as origins
import pytest

from drivelab.cli.main import main
from drivelab.imported.tables import NAMES
from drivelab.tables import io

GOLDEN = Path(__file__).parents[2] / "golden"


def test_a_report_with_figures_from_tkperf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = origins.tkperf(tmp_path / "s4600.xml", ("iops", "writesat"))
    out, page = tmp_path / "out", tmp_path / "page.html"
    assert main(["import", "tkperf", str(source), "--drive", "s4600", "-o", str(out), "--report", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "s4600/imported-tkperf/iops: IOPS, TKperf, 56 cells, 112 values" in printed
    assert {path.stem for path in (out / "tables").iterdir()} == set(NAMES)
    html = page.read_text(encoding="utf-8")
    assert "61,265" in html
    assert "Steady-state convergence" in html
    assert "Saturation against bytes written" in html
    drawn = {path.stem for path in (out / "figures/s4600/imported-tkperf/iops").glob("*.svg")}
    assert drawn == {"convergence", "window", "measurement_2d"}


def test_counts_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / "solidigm_p41_plus.csv"
    assert main(["import", "values", str(path), "--drive", "p41", "-o", str(tmp_path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["recordings"][0] == "p41-512gb/imported-values/solidigm-p41-plus"
    assert summary["rows"]["summary"] == len(io.read(tmp_path / "tables/summary.parquet", "summary")) == 36


def test_printed_values_of_several_capacities_are_compared(tmp_path: Path) -> None:
    path, page = GOLDEN / "solidigm_p41_plus.csv", tmp_path / "page.html"
    assert main(["import", "values", str(path), "--drive", "p41", "-o", str(tmp_path), "--report", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "No verdict on p41-1tb against p41-512gb: 12 printed values with unknown scatter (Δ " in html
    assert "after adjustment" not in html


@pytest.mark.parametrize("of_study", ["study.txt", "recordings/op7/plan.json", "tables/summary.parquet"])
def test_results_of_a_study_are_not_overwritten(
    tmp_path: Path, of_study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = origins.tkperf(tmp_path / "x.xml", ("lat",)), tmp_path / "results"
    (out / of_study).parent.mkdir(parents=True, exist_ok=True)
    (out / of_study).write_text("of a study")
    before = sorted(out.rglob("*"))
    assert main(["import", "tkperf", str(source), "--drive", "a", "-o", str(out)]) == 2
    assert "holds the results of a study" in capsys.readouterr().err
    assert sorted(out.rglob("*")) == before
    assert (out / of_study).read_text() == "of a study"


def test_drive_name_is_required(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", "tkperf", str(origins.tkperf(tmp_path / "x.xml", ("lat",))), "-o", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main(arguments)
    assert "--drive" in capsys.readouterr().err
    assert main([*arguments, "--drive", "a/b"]) == 2
    assert "give a name for the drive, without a slash" in capsys.readouterr().err


def test_a_report_names_the_loads_of_an_import(tmp_path: Path) -> None:
    """Writes at one load beside reads at another would read as a comparison."""
    source, page = tmp_path / "runs", tmp_path / "page.html"
    for second, (rw, depth, block) in enumerate(product(("randread", "randwrite"), (1, 32), ("4k", "8k"))):
        if (rw == "randread") == (depth == 1):
            rates = (100.0, 0.0) if rw == "randread" else (0.0, 900.0)
            body = origins.document(origins.job(*rates, origins.options(rw, depth, block=block)), second=second)
            origins.write(source / f"{second}.json", body)
    out = ["-o", str(tmp_path / "out"), "--report", str(page)]
    assert main(["import", "fio-json", str(source), "--drive", "old", *out]) == 0
    html = page.read_text(encoding="utf-8")
    for load in ("T1Q1", "T1Q32"):
        assert f"IOPS: block size by R/W mix %, random access, {load} (one warm round)" in html
    assert "1, 32 per thread" in html


def test_a_bad_file_beside_good_ones_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "runs", tmp_path / "out"
    origins.write(source / "good.json", origins.document(origins.job(1000.0, 0.0, origins.options())))
    (source / "bad.json").write_text("{")
    command = ["import", "fio-json", str(source), "--drive", "a", "-o", str(out)]
    assert main(command) == 0
    assert "drivelab: left out: " in (printed := capsys.readouterr().err)
    assert "bad.json: is truncated or damaged" in printed
    assert len(io.read(out / "tables/cells.parquet", "cells")) == 1
    (source / "good.json").unlink()
    assert main(command) == 2
    assert "bad.json: is truncated or damaged" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["tkperf", "fio-json", "values"])
def test_a_missing_source_and_a_device_are_refused(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, reason in (("nothing.json", "nothing.json"), ("device", "is a pipe, a device or a socket")):
        assert main(["import", kind, str(tmp_path / name), "--drive", "a", "-o", str(tmp_path / "out")]) == 2
        assert reason in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
