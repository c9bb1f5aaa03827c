"""Results folders that any user may write to: the live view continues whatever their files contain."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from watched import MadeDrive, facts

from drivelab.recording.writer import read_object
from drivelab.run.progress import read_status
from drivelab.watch.follow import Follower
from drivelab.watch.study_view import StudyWatch
from drivelab.watch.text import changes, screen, write_page

DEEP = "[" * 100_000 + "]" * 100_000
_PATIENCE_S = 120
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=4),
        st.sampled_from([10**400, -(10**30), 2**63 - 1, "\ud800", "\x1b[2J", "a/b/c", "../../..", "\x00", "x" * 300]),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
STATUS = ("recording", "stage", "text", "fraction", "pid", "at_s", "state", "reason", "since_s", "host", "boot_id",
          "process", "failures")  # fmt: skip
JOURNAL = ("event", "at", "step", "round", "cell", "workload", "metrics", "directory", "reason", "reasons", "bytes")
SAMPLE = ("at_s", "reads", "writes", "write_ms", "temperature_c", "load_pct", "throttle_seconds")


def look(watch: StudyWatch, page: Path) -> None:
    """Do everything that terminal, pipe and page do with a study, twice."""
    for _ in range(2):
        watch.poll()
        list(changes([watch.state()], {}, 0.0))
        Console(file=StringIO(), width=80).print(screen([watch], 80))
        write_page(screen([watch], 120), page, reloads=True)
    assert "\x1b" not in page.read_text()


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(STATUS), VALUES, max_size=3),
    st.dictionaries(st.sampled_from(JOURNAL), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(SAMPLE), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(("subject", "context")), VALUES, max_size=2) | VALUES,
)
@example({"state": ""}, {}, {}, {})
def test_no_value_stops_the_live_view(
    tmp_path_factory: pytest.TempPathFactory, status: Any, line: Any, sample: Any, plan: Any
) -> None:
    page = tmp_path_factory.mktemp("page") / "watch.html"
    drive = MadeDrive(tmp_path_factory.mktemp("made"), "op7").begin()
    drive.cell(1, 0, 1500)
    drive.second()
    drive.status(**status)
    watch = StudyWatch(facts(drive.results, drive))
    look(watch, page)
    drive.journal(**{"event": "cell", **line})
    drive.telemetry(**{**drive.counters, **sample})
    (drive.part / "plan.json").write_text(json.dumps(plan))
    drive.second()
    read_status(drive.results)
    look(watch, page)
    look(StudyWatch(facts(drive.results, drive)), page)


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def deep(path: Path) -> None:
    path.write_text(f"{DEEP}\n")


def long(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.touch()
    os.truncate(path, 1 << 40)


def loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [pipe, endless, deep, long, loop])
@pytest.mark.parametrize("name", ["status/op7.json", "journal.jsonl", "telemetry.jsonl", "plan.json", "log"])
def test_no_file_stops_the_live_view(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    drive = MadeDrive(tmp_path, "op7").begin()
    drive.second()
    drive.status()
    log = tmp_path / "logs/measure" / f"{drive.recording}.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    make(log if name == "log" else tmp_path / name if "/" in name else drive.part / name)
    watch = StudyWatch(facts(tmp_path, drive))
    thread = threading.Thread(target=lambda: (look(watch, tmp_path / "watch.html"), read_status(tmp_path)), daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    assert not thread.is_alive(), "the reader is blocked"


@pytest.mark.parametrize("make", [pipe, endless, deep, long, loop])
def test_readers_treat_hostile_files_as_empty(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "a")
    contents: list[Any] = []
    thread = threading.Thread(
        target=lambda: contents.extend((read_object(tmp_path / "a"), Follower().objects(tmp_path / "a"))), daemon=True
    )
    thread.start()
    thread.join(_PATIENCE_S)
    assert contents == [{}, []]
