"""Replays of a recording as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
import replay_frames

from drivelab.collect.replays import replay_tables
from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.tables import io
from drivelab.tables.replay_schemas import REPLAY_TABLES

CHOICE = ReplayChoice()


def line(directory: str = "a", **changed: object) -> dict[str, object]:
    return {"step": 2, "repeat": 1, "warm": True, "trace": "sqlite", "directory": directory,
            "choice": CHOICE.to_mapping(), **changed}  # fmt: skip


def read(
    recording: Path, *lines: dict[str, object], steps: Sequence[dict[str, dict[str, object]]] = ()
) -> dict[str, pd.DataFrame]:
    return replay_tables(recording, lines, steps, replay_frames.key(), lambda line: replay_frames.NO_TELEMETRY)


@pytest.mark.parametrize(
    "options",
    [{}, {"asap": True}, {"partial": True, "lost": 2}, {"phases": (("steady", 2),)},
     {"traces": ("a", "b"), "runs": 1}],
    ids=str,
)  # fmt: skip
def test_every_table_matches_its_schema(tmp_path: Path, options: dict[str, object]) -> None:
    tables = replay_frames.tables(requests=300, **options)  # type: ignore[arg-type]
    assert set(tables) == set(REPLAY_TABLES)
    for name, frame in tables.items():
        io.write(frame, tmp_path / name, name)
        pd.testing.assert_frame_equal(io.read(tmp_path / name, name), frame, check_dtype=False)


def test_a_recording_without_replays_has_empty_tables(tmp_path: Path) -> None:
    for name, frame in read(tmp_path).items():
        assert frame.empty
        io.write(frame, tmp_path / name, name)


def test_counts_match_the_requests(tmp_path: Path) -> None:
    frame = replay_frames.outcome(500)
    frame.loc[490:, ["issue_ns", "complete_ns"]] = None
    frame.loc[:2, "error"] = 5
    replay_frames.cell(tmp_path / "a", frame, choice=CHOICE, state="interrupted", lost=4)
    tables = read(tmp_path, line())
    (row,) = tables["replays"].to_dict("records")
    issued = frame.iloc[:490]
    assert (row["planned_requests"], row["requests"], row["errors"]) == (500, 490, 3)
    for column, operation in (("read_ios", "read"), ("flushes", "flush"), ("discards", "discard")):
        assert row[column] == (issued["operation"] == operation).sum()
        assert row[f"planned_{column}"] == (frame["operation"] == operation).sum()
    good = issued[(issued["operation"] == "write") & (issued["error"] == 0)]
    assert row["write_bytes"] == good["length_bytes"].sum()
    assert (row["state"], row["partial"], row["trace_marks"]) == ("interrupted", True, "lossy")
    assert row["marks"][0] == "lossy: the trace lacks 4 events"
    operations = tables["replay_operations"]
    assert operations["issued_requests"].sum() == 490
    assert operations["failed_requests"].sum() == 3
    assert tables["replay_latency"].groupby("source")["count"].sum()["replay"] == 487
    assert tables["replay_issue_errors"]["count"].sum() == 490
    over_time = tables["replay_over_time"]
    assert (len(over_time), over_time["planned_requests"].sum(), over_time["issued_requests"].sum()) == (100, 500, 490)
    (replay_pass,) = tables["replay_passes"].to_dict("records")
    assert replay_pass["partial"]
    assert pd.isna(replay_pass["score"])  # the rest of the pass is a different workload


def test_timing_is_a_mode_and_a_description(tmp_path: Path) -> None:
    choice = ReplayChoice(TimingChoice("idle-capped", idle_cap_s=0.1))
    replay_frames.cell(tmp_path / "a", replay_frames.outcome(300), choice=choice)
    (row,) = read(tmp_path, line(choice=choice.to_mapping()))["replays"].to_dict("records")
    assert (row["timing_mode"], row["timing"], row["mapping"]) == ("idle-capped", choice.timing.words(), "modulo")


def test_the_mapping_of_a_trace_has_one_row(tmp_path: Path) -> None:
    for name in "abc":
        replay_frames.cell(tmp_path / name, replay_frames.outcome(200), choice=CHOICE)
    lines = (line("a"), line("b", repeat=2), line("c", trace="boot"))
    assert read(tmp_path, *lines)["replay_mappings"]["trace"].tolist() == ["sqlite", "boot"]


@pytest.mark.parametrize("damage", ["", "{", None])
def test_missing_or_damaged_evidence_is_named(tmp_path: Path, damage: str | None) -> None:
    replay_frames.cell(tmp_path / "a", replay_frames.outcome(200), choice=CHOICE)
    if damage is None:
        (tmp_path / "a/outcome.parquet").unlink()
    else:
        (tmp_path / "a/report.json").write_text(damage)
    with pytest.raises(UserError, match=f"{tmp_path}/a/"):
        read(tmp_path, line())


def test_tables_contain_the_planned_passes(tmp_path: Path) -> None:
    def soak(number: int, time_s: float, phase: str) -> dict[str, dict[str, object]]:
        return {"soak": {"phase": phase, "phase_pass": number, "until": {"time_s": time_s}}}

    def replay(number: int, phase: str) -> dict[str, dict[str, object]]:
        return {"replay": {"phase": phase, "phase_pass": number, "until": {"passes": 1}}}

    measure: list[dict[str, dict[str, object]]] = [
        soak(1, 1.0, "worse"), replay(1, "worse"), soak(2, 2.0, "worse"), replay(2, "worse"),
        soak(1, 2.0, "steady"), replay(1, "steady"), soak(2, 2.0, "steady"), replay(2, "steady"),
        {"replay": {"until": {"threshold": 0.05, "metric": "score"}}},
    ]  # fmt: skip
    for name in "abc":
        replay_frames.cell(tmp_path / name, replay_frames.outcome(200), choice=CHOICE)
    lines = (line("a", step=1, phase="worse", phase_pass=1), line("b", step=5, phase="steady", phase_pass=1),
             line("c", step=8))  # fmt: skip
    tables = read(tmp_path, *lines, steps=measure)
    for name in ("replays", "replay_passes"):
        table = tables[name].astype(object).where(tables[name].notna(), None)
        assert table["asked_passes"].tolist() == [1, 1, None]
        assert table["alike_passes"].tolist() == [False, True, None]
    assert tables["replays"]["most_in_flight"].notna().all()
