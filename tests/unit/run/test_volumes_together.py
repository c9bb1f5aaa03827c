"""Drives that replay the volumes of one trace together, on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import Row, read, write, write_volumes
from stages import measured_together

import drivelab
from drivelab.campaign import traces
from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.replay.outcome import read_outcome
from drivelab.trace.derive.one_volume import one_volume
from drivelab.workflow.layout import Layout

MS = 1_000_000
STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
traces: {log: {file: log.parquet}, data: {file: data.parquet}, other: {file: other.parquet}}
measurements:
  - {protocol: trace-replay, name: web, scale: demo, volumes: {op7: log, op28: data}}
"""
STUDY_FILE = Path("config/mine.yaml")


@pytest.fixture(autouse=True)
def volumes(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Row]]:
    """Make a trace of two volumes, whose requests alternate after a first request to `log`, and separate them."""
    monkeypatch.setenv("PYTHONPATH", str(Path(drivelab.__file__).parents[1]))
    traces._digest.cache_clear()  # of the files of the test before, which have the same names
    rows = [("log", Row(0, None, MS, "write"))]
    for n in range(1, 41):
        begin_ns = (20 + n) * MS
        name = ("data", "log")[n % 2]
        rows.append((name, Row(begin_ns, None, begin_ns + MS // 4, ("read", "write")[n % 2], 8192 * n, 4096)))
    for name in ("log", "data"):
        one_volume(write_volumes(Path("trace.parquet"), rows), Path(f"{name}.parquet"), name)
    write(Path("other.parquet"), [Row(0)])
    STUDY_FILE.write_text(STUDY)
    return rows


def plans_of(study: str = STUDY) -> list[Plan]:
    STUDY_FILE.write_text(study)
    return [planned.plan for planned in Campaign.load(STUDY_FILE).plans]


def test_each_drive_replays_its_volume_on_the_time_of_the_trace(volumes: list[tuple[str, Row]]) -> None:
    plans = plans_of()
    measured_together(plans)
    passes = []
    for plan, name in zip(plans, ("log", "data"), strict=True):
        lines = [line for line in read_journal(plan.recording_path) if line["event"] == "replay"]
        passes.append(len(lines))
        assert {line["trace"] for line in lines} == {name}
        for line in lines:
            rows = read_outcome(plan.recording_path / line["directory"] / "outcome.parquet")
            expected = [row for volume, row in volumes if volume == name]
            assert rows["deadline_ns"].tolist() == [row.queue_ns for row in expected], "time 0 is that of the trace"
            assert rows["offset_bytes"].tolist() == [row.offset_bytes for row in expected]
            assert rows["operation"].tolist() == [row.operation for row in expected]
            assert (rows["issue_ns"] >= rows["deadline_ns"]).all()
        tables = collect(plan.recording_path, reduced=False)
        assert set(tables["replays"]["trace"]) == {name}
    assert passes[0] == passes[1] >= 4, "one cold and at least three warm passes"


def test_drives_repeat_until_all_have_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the two would stop after another number of passes alone."""
    cold, warm = 1, {"op7": 1, "op28": 2}
    study = STUDY.replace("{op7: log, op28: data}}", "{op7: log, op28: data}, set: {replay: {until: PASSES}}}")
    plans = [
        next(plan for plan in plans_of(study.replace("PASSES", f"{{passes: {warm[name]}}}")) if plan.drive == name)
        for name in ("op7", "op28")
    ]
    measured_together(plans)
    for plan in plans:
        lines = [line for line in read_journal(plan.recording_path) if line["event"] == "replay"]
        assert len(lines) == cold + 2


def test_one_job_measures_the_drives_of_all_volumes() -> None:
    plans = plans_of()
    assert [plan.subject["simultaneous"] for plan in plans] == [["VIRTUAL-OP28", "VIRTUAL-OP7"]] * 2
    assert [plan.context["trace_paths"] for plan in plans] == [["log.parquet"], ["data.parquet"]]
    assert plans[0].subject["volumes"] == plans[1].subject["volumes"]
    assert {serial: trace["name"] for serial, trace in plans[0].subject["volumes"].items()} == {
        "VIRTUAL-OP7": "log", "VIRTUAL-OP28": "data"
    }  # fmt: skip
    layout = Layout(Campaign.load(STUDY_FILE))
    (job,) = layout.simultaneous()
    assert job.traces == ["log.parquet", "data.parquet"]


def test_another_volume_beside_it_is_another_measurement(volumes: list[tuple[str, Row]]) -> None:
    before = plans_of()[0].digest
    changed = [(name, row._replace(length_bytes=8192) if name == "data" else row) for name, row in volumes]
    whole = write_volumes(Path("trace.parquet"), changed)
    for name in ("log", "data"):
        one_volume(whole, Path(f"{name}.parquet"), name)
    traces._digest.cache_clear()
    assert plans_of()[0].digest != before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("op28: data", "op28: log", r"volumes' gives 'log' to 'op7' and 'op28'"),
        ("op28: data", "op9: data", r"volumes' names 'op9', which is not among the study's drives"),
        ("op28: data", "op28: date", r"volumes' names 'date', which is not a key of 'traces'; did you mean 'data'"),
        ("op28: data", "op28: other", r"other.parquet: is not one volume of a trace of several; separate .*--volume"),
        ("volumes:", "trace: log, volumes:", r"volumes' and 'trace' are both given"),
        ("volumes:", "drives: [op7], volumes:", r"volumes' and 'drives' are both given"),
        ("trace-replay,", "trace-replay-asap,", r"the timing 'as soon as possible .*choose a protocol with the timing"),
        ("op28: data}", "op28: data}, set: {replay: {dependencies: process}}", r"no request can wait for one of"),
        ("data}}\n", "data}}\nexclude: [{drives: [op28]}]\n", r"run 1 leaves out drive 'op28', whose volume"),
    ],
)  # fmt: skip
def test_what_drives_cannot_replay_together_is_refused(old: str, new: str, words: str) -> None:
    assert STUDY.count(old) == 1
    with pytest.raises(UserError, match=words):
        plans_of(STUDY.replace(old, new))


def test_volumes_of_different_traces_are_refused(volumes: list[tuple[str, Row]]) -> None:
    later = [(name, row.later(MS)) for name, row in volumes]
    one_volume(write_volumes(Path("later.parquet"), later), Path("data.parquet"), "data")
    with pytest.raises(UserError, match="are volumes of different traces, so they have no common time; merge"):
        plans_of()
    one_volume(Path("trace.parquet"), Path("data.parquet"), "log")
    with pytest.raises(UserError, match=r"data.parquet: is volume 'log', like log.parquet"):
        plans_of()


def test_a_volume_keeps_its_requests_and_times(volumes: list[tuple[str, Row]]) -> None:
    for name in ("log", "data"):
        rows, provenance = read(Path(f"{name}.parquet"))
        assert rows == [row for volume, row in volumes if volume == name]
        assert provenance["volume"] == name
        (step,) = provenance["derived"]
        assert (step["step"], step["requests"], step["source"]["requests"]) == ("volume", len(rows), len(volumes))
    for path, words in (("trace.parquet", "has no volume 'lob'; did you mean 'log'"), ("log.parquet", "one volume")):
        with pytest.raises(UserError, match=words):
            one_volume(Path(path), Path("new.parquet"), "lob")
    assert not Path("new.parquet").exists()


def test_volumes_on_one_drive_are_refused() -> None:
    rows = [f"p{number}\t/dev/disk/by-partuuid/{number}\t{number}\tyes\t\tpartition\tS1" for number in (1, 2)]
    header = "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers"
    Path("config/parts.tsv").write_text("\n".join([header, *rows]) + "\n")
    study = STUDY.replace("[op7, op28]", "[p1, p2]").replace("{op7: log, op28: data}", "{p1: log, p2: data}")
    with pytest.raises(UserError, match="key 'volumes' measures all drives at the same time, but 'p1' and 'p2' are"):
        plans_of(study.replace("clock: virtual", "drives_sheet: config/parts.tsv"))
