"""Soaks that end at steady state, on the virtual clock, where the truth is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_plans import made_plan
from stages import lines, run_stages

from drivelab.collect.collect import collect
from drivelab.core.errors import CellFailed, UserError
from drivelab.criteria.steady_state import find_window
from drivelab.fio.document import documents
from drivelab.fio.early_end import StatusDocuments, ended_early, note_reason
from drivelab.fio.result import FioResult, complete_slices, read_result, read_slices
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.run import clock_device
from drivelab.run.measure import measure
from drivelab.run.soak import SteadySlices
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

SLICE_S = 0.5
CELL = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 8,
        "slice_s": SLICE_S}  # fmt: skip
STEADY = {"every_s": SLICE_S, "window": 5, "data_excursion": 0.2, "slope_excursion": 0.1, "metric": "iops"}

NARROW = {"over_provisioning": "10%"}
"""Makes the write cliff steep."""


def soak(**until: Any) -> dict[str, Any]:
    return {"soak": {"cell": CELL, "until": until}}


def slices_of(plan: Plan, line: dict[str, Any]) -> list[FioResult]:
    return read_slices(plan.recording_path / line["directory"], Cell(**line["workload"]))


def host_writes(plan: Plan) -> int:
    model = DriveModel.from_mapping("mine", plan.subject["drive"]["virtual"])
    state = next(Path(plan.context["results"]).glob("virtual/*.state"))
    return VirtualClockDrive(model, state).counters()["host_write_bytes"]


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Folders of measurements, each with a new drive."""

    def make() -> Iterator[Path]:
        number = 0
        while True:
            number += 1
            (folder := tmp_path / str(number)).mkdir()
            yield folder

    return make()


@pytest.mark.parametrize("every", [1, 2])
def test_a_soak_ends_at_its_first_steady_slice(folders: Iterator[Path], every: int) -> None:
    """A new drive: the write cliff, then steady state, at the slice where the analysis finds it."""
    criterion = {**STEADY, "every_s": every * SLICE_S}
    whole = made_plan(folder := next(folders), [soak(time_s=30.0)], model=NARROW)
    run_stages(whole, folder)
    truth = slices_of(whole, lines(whole, "soak")[0])
    window = find_window({"iops": [part.iops for part in truth[every - 1 :: every]]}, criterion)
    assert window.reached

    plan = made_plan(folder := next(folders), [soak(time_s=30.0, steady_state=criterion)], model=NARROW)
    run_stages(plan, folder)
    (line,) = lines(plan, "soak")
    slices = slices_of(plan, line)
    assert line["ended_by"] == "steady state"
    assert len(slices) == line["slices"] == every * window.last_round
    assert [entry["slice"] for entry in line["window"]] == [
        every * number for number in range(window.first_round, window.last_round + 1)
    ]
    assert [part.iops for part in slices[:-1]] == [part.iops for part in truth[: len(slices) - 1]]
    assert line["window"][-1]["value"] == pytest.approx(truth[len(slices) - 1].iops)
    assert slices[0].iops > 2 * line["window"][0]["value"], "a write cliff precedes steady state"


def test_ios_in_flight_at_the_end_are_in_the_evidence(folders: Iterator[Path]) -> None:
    plan = made_plan(folder := next(folders), [soak(time_s=30.0, steady_state=STEADY)])
    run_stages(plan, folder)
    (line,) = lines(plan, "soak")
    assert line["bytes"] == host_writes(plan)
    assert line["runtime_s"] == pytest.approx(line["slices"] * SLICE_S, abs=0.1)
    assert sum(part.ios for part in slices_of(plan, line)) == line["bytes"] // 4096, "no I/O counts twice"
    cells = collect(plan.recording_path, reduced=True)["cells"]
    assert list(cells["round"]) == list(range(1, line["slices"] + 1))
    assert list(cells["iops"].tail(5)) == pytest.approx([entry["value"] for entry in line["window"]], rel=0.01)


def test_a_rate_limited_soak_ends_when_it_is_steady(folders: Iterator[Path]) -> None:
    """The soak is steady at once, and does not run for its maximum time."""
    limited = {"cell": {**CELL, "rate_iops": 200.0}, "until": {"time_s": 30.0, "steady_state": STEADY}}
    plan = made_plan(folder := next(folders), [{"soak": limited}])
    run_stages(plan, folder)
    (line,) = lines(plan, "soak")
    assert (line["ended_by"], line["slices"]) == ("steady state", 5)
    assert line["runtime_s"] == pytest.approx(5 * SLICE_S, abs=0.1)
    assert line["bytes"] == host_writes(plan)


@pytest.mark.parametrize(
    ("until", "ended_by"), [({"time_s": 2.0}, "time"), ({"capacity_multiple": 1.0, "time_s": 30.0}, "volume")]
)
def test_the_first_limit_ends_a_soak(folders: Iterator[Path], until: dict[str, Any], ended_by: str) -> None:
    plan = made_plan(folder := next(folders), [soak(**until, steady_state=STEADY)])
    run_stages(plan, folder)
    (line,) = lines(plan, "soak")
    assert line["ended_by"] == ended_by
    assert "window" not in line
    assert ended_early(plan.recording_path / line["directory"]) is None


def test_a_soak_without_a_rule_records_no_reason_for_its_end(folders: Iterator[Path]) -> None:
    plan = made_plan(folder := next(folders), [soak(time_s=1.0)])
    run_stages(plan, folder)
    assert "ended_by" not in lines(plan, "soak")[0]


def test_a_soak_that_may_never_end_is_refused(folders: Iterator[Path]) -> None:
    plan = made_plan(folder := next(folders), [soak(steady_state=STEADY)])
    with pytest.raises(UserError, match="wear the drive for ever; add a time or a capacity_multiple"):
        run_stages(plan, folder)


@pytest.mark.usefixtures("nothing_undone")
def test_after_an_interruption_the_window_lies_after_the_gap(
    folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drive is steady long before; but slices of the interrupted part do not count."""
    plan = made_plan(
        folder := next(folders), [soak(time_s=20.0), soak(time_s=30.0, steady_state=STEADY)], {"purge": "none"}
    )
    original = clock_device.ClockDevice.run

    def killed(device: Any, cell: Cell, directory: Path, seed: int, on_tick: Any, until: Any = None) -> None:
        original(device, cell, directory, seed, on_tick, until)
        if until is not None:
            text = (directory / "fio.json").read_text()
            third = [place for place in range(len(text)) if text.startswith("\n}\n{", place)][2]
            (directory / "fio.json").write_text(text[: third + 100])
            (directory / "exit_code").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(clock_device.ClockDevice, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            run_stages(plan, folder)
    measure(plan, folder / "conditioned.json")
    first, second = (line for line in lines(plan, "soak") if line["step"] == 1)
    assert (first["finished"], first["slices"], second["first_slice"]) == (False, 3, 4)
    assert second["ended_by"] == "steady state"
    assert [entry["slice"] for entry in second["window"]] == [4, 5, 6, 7, 8], "a steady drive needs only one window"


def test_slices_take_no_time_on_the_virtual_clock(tmp_path: Path) -> None:
    """The last document of a run in slices equals the document of the same run in one piece."""
    cell = Cell(**{**CELL, "slice_s": None}, runtime_s=5.0)
    texts = []
    for number, slice_s in enumerate((None, 0.1)):
        (folder := tmp_path / str(number)).mkdir()
        plan = made_plan(folder)
        drive = VirtualClockDrive(DriveModel.from_mapping("mine", plan.subject["drive"]["virtual"]), folder / "state")
        drive.run(Cell(**{**cell.to_mapping(), "slice_s": slice_s}), folder)
        texts.append(list(documents((folder / "fio.json").read_text())))
    assert (len(texts[0]), len(texts[1])) == (1, 50)
    assert texts[0][-1] == texts[1][-1]


def status(ios: int, runtime_ms: int) -> dict[str, Any]:
    latency = {"N": ios, "mean": 1000.0, "max": 2000, "bins": {"1000": ios}}
    direction = {"drop_ios": 0, "total_ios": ios, "io_bytes": 4096 * ios, "runtime": runtime_ms,
                 "iops": 1000 * ios / runtime_ms, "bw_bytes": 4096000 * ios // runtime_ms,
                 "lat_ns": latency}  # fmt: skip
    nothing = {**direction, "total_ios": 0, "io_bytes": 0, "runtime": 0, "iops": 0, "bw_bytes": 0,
               "lat_ns": {"N": 0}}  # fmt: skip
    job = {"error": 0, "read": nothing, "write": direction, "job_runtime": runtime_ms, "usr_cpu": 0, "sys_cpu": 0}
    return {"fio version": "fio-3.33", "timestamp_ms": 10**12 + runtime_ms, "jobs": [job]}


def rule(**changes: Any) -> SteadySlices:
    return SteadySlices({**STEADY, "every_s": 1.0, "window": 3, **changes}, 1.0)


@pytest.mark.parametrize("early_ms", [0, 400])
def test_a_late_document_adds_no_slice(early_ms: int) -> None:
    """A document 0.4 s before the third boundary is less than half a slice away from it."""
    times_ms = sorted({1000, 2000, 3000 - early_ms, 3000, 4000})
    judge = rule(window=4)
    answers = [judge(status(time_ms // 10, time_ms)) for time_ms in times_ms]
    assert answers == [None] * (len(times_ms) - 1) + ["steady state"]
    assert list(judge.window) == [1, 2, 3, 4]


def test_a_slice_without_io_is_not_steady() -> None:
    judge = rule()
    assert [judge(status(500, 1000 * number)) for number in range(1, 7)] == [None] * 6


def test_an_excursion_must_leave_the_window() -> None:
    judge, ios = rule(), 0
    answers = []
    for number, iops in enumerate([100, 100, 200, 100, 100, 100], 1):
        ios += iops
        answers.append(judge(status(ios, 1000 * number)))
    assert answers == [None] * 5 + ["steady state"]


def test_a_period_that_is_not_a_multiple_of_a_slice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.5 s is not a multiple of a slice of 1 s"):
        rule(every_s=1.5)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_each_document_is_read_once(tmp_path: Path, data: st.DataObject) -> None:
    wanted = [status(number, 1000 * number) for number in range(1, 4)]
    text = "".join(json.dumps(document, indent=2) + "\n" for document in wanted).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    path = Path(mkdtemp(dir=tmp_path)) / "fio.json"
    reader, parsed = StatusDocuments(path), list(StatusDocuments(path).new())
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        path.write_bytes(b"#" * begin + text[begin:end])  # earlier bytes must not be read again
        parsed += reader.new()
    assert parsed == wanted


def evidence(folder: Path, exit_code: int, reason: str | None, *, farewell: bool) -> Path:
    parts = [json.dumps(status(100 * number, 1000 * number), indent=2) + "\n" for number in range(1, 4)]
    if farewell:
        parts.insert(2, "\nfio: terminating on signal 2\n")
    (folder / "fio.json").write_text("".join(parts))
    (folder / "exit_code").write_text(f"{exit_code}\n")
    if reason is not None:
        note_reason(folder, reason)
    return folder


HOUR = Cell(**CELL, runtime_s=3600.0)


def test_an_early_end_by_the_stop_rule_is_valid(tmp_path: Path) -> None:
    folder = evidence(tmp_path, 128, "steady state", farewell=True)
    assert [part.ios for part in read_slices(folder, HOUR)] == [100, 100, 100]
    assert read_result(folder).ios == 300


@pytest.mark.parametrize(
    ("exit_code", "reason", "farewell", "words"),
    [
        (128, None, True, "another process interrupted fio"),
        (0, "steady state", False, "fio ended after 3 s and 1228800 bytes, but the cell needs 3600 s"),
        (0, None, False, "fio ended after 3 s and 1228800 bytes, but the cell needs 3600 s"),
        (1, "steady state", False, "fio ended with status 1"),
        (-9, "steady state", False, "fio was killed by signal 9"),
    ],
)
def test_any_other_early_end_is_invalid(
    tmp_path: Path, exit_code: int, reason: str | None, farewell: bool, words: str
) -> None:
    with pytest.raises(CellFailed, match=words):
        read_slices(evidence(tmp_path, exit_code, reason, farewell=farewell), HOUR)


def test_a_process_killed_during_its_end_keeps_its_slices(tmp_path: Path) -> None:
    folder = evidence(tmp_path, 128, "steady state", farewell=True)
    (folder / "exit_code").unlink()
    assert [part.ios for part in complete_slices(folder)] == [100, 100]
