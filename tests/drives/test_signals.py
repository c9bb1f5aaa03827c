"""Signals at random moments to commands in real time: nothing is left except after kill -9.

The next command cleans up after kill -9. SIGNALS is the number of signals, SIGNALS_SEED the random seed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from captures import running as processes_with
from chaos_results import unfinished
from faults import FaultStudy, complete, evidence_of, kept_cells, outcome
from leftovers import leftovers, processes
from made_traces import Row, write
from waits import DRIVELAB, wait_until

from drivelab.core import private
from drivelab.drives.undo import current_value
from drivelab.host.temporary import Temporary
from drivelab.recording.checksums import altered
from drivelab.replay.outcome import read_outcome
from drivelab.trace.capturing import tracer
from drivelab.virtual import manage

pytestmark = [pytest.mark.device, pytest.mark.single]
SEED = int(os.environ.get("SIGNALS_SEED", "19"))
ALL = int(os.environ.get("SIGNALS", "50"))
SHARES = {"virtual": 0.26, "doctor": 0.24, "replay": 0.16, "capture": 0.16, "stage": 0.1, "run": 0.08}
SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
# Change only two settings of the loop device, and nothing else on the real host.
DOCTOR = f"""
from drivelab.host import settings
chosen = tuple(entry for entry in settings.catalogue() if entry.name in ("Read-ahead", "I/O scheduler"))
settings.catalogue = lambda: chosen
{DRIVELAB[-1]}
"""


@dataclass
class Game:
    """Moments and signals for one kind of command, drawn from the seed."""

    kind: str
    chance: random.Random = field(init=False)
    is_done: bool = False
    """Whether the command ended before its signal came."""

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{SEED} {self.kind}")

    def play(
        self, start: Callable[[], subprocess.Popen[str]], is_at_work: Callable[[], object], span_s: float
    ) -> Iterator[signal.Signals]:
        """Send each signal to a command started by `start`, and yield the signal after the command has ended.

        A quarter of the moments are within 1 s of the start, the others within `span_s` after the command `is_at_work`.
        All kinds of signal are used in turn.
        """
        deck: list[signal.Signals] = []
        for _ in range(max(round(ALL * SHARES[self.kind]), 1)):
            deck = deck or self.chance.sample(SIGNALS, len(SIGNALS))
            number, is_early, share = deck.pop(), self.chance.random() < 0.25, self.chance.random()
            process = start()
            while not (is_early or is_at_work() or process.poll() is not None):
                time.sleep(0.005)
            time.sleep(share * (1.0 if is_early else span_s))  # any moment will do
            process.send_signal(number)
            done = outcome(process)
            print(f"SIGNALS_SEED={SEED} {self.kind}: {number.name}, {is_early=}, {share=:.2f}: {done}")
            # Finished before, interrupted, or ended by the signal itself while Python starts or exits. A Python that is
            # interrupted before it has its modules reports that itself.
            is_start = done.output.startswith("Fatal Python error: init_")
            assert is_start or done.status in (0, 130, -number), done
            assert is_start or "Traceback" not in done.output or done.status == -signal.SIGINT
            self.is_done = not (done.output == "" or "interrupted" in done.output or "Traceback" in done.output)
            yield number


def drivelab(*arguments: str, code: str = DRIVELAB[-1]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def succeeds(process: subprocess.Popen[str]) -> None:
    done = outcome(process)
    assert done.status == 0, done


def test_virtual(run_directory: Path, tmp_path: Path) -> None:
    config = tmp_path / "drives.yaml"
    config.write_text("one: {serial: ONE, capacity: 8MiB, over_provisioning: 28%}\n")
    start = partial(drivelab, "virtual", "start", "one", "--config", str(config))
    game = Game("virtual")
    for number in game.play(start, (run_directory / "one.drive").exists, 0.6):
        if game.is_done or number == signal.SIGKILL:
            succeeds(drivelab("virtual", "stop"))
        assert leftovers() == []
        assert {path.suffix for path in run_directory.glob("*")} <= {".lock"}


def test_doctor(run_directory: Path, device: str) -> None:
    queue = Path("/sys/block") / Path(device).name / "queue"
    settings = {"read_ahead_kb": "256", "scheduler": "mq-deadline"}
    for name, value in settings.items():
        (queue / name).write_text(value)
    game, claims = Game("doctor"), Temporary("host").folder / "claims"
    start = partial(drivelab, "doctor", "--apply", device, code=DOCTOR)
    for number in game.play(start, (claims / "by-hand").exists, 0.2):
        if game.is_done or number == signal.SIGKILL:
            succeeds(drivelab("doctor", "--restore"))
        assert {name: current_value(queue / name) for name in settings} == settings
        assert Temporary("host").remembered() == []


@pytest.mark.usefixtures("engine_possible")
def test_replay(run_directory: Path, tmp_path: Path) -> None:
    rows = [Row(n * 1_000_000, operation="write", offset_bytes=4096 * (n % 100)) for n in range(100_000)]
    long, short = write(tmp_path / "long.parquet", rows), write(tmp_path / "short.parquet", rows[:50])
    target, out = tmp_path / "target.img", tmp_path / "out.parquet"
    target.write_bytes(bytes(8 << 20))
    arguments = ("--target", str(target), "--yes", "-o", str(out))
    start = partial(drivelab, "replay", str(long), *arguments)
    for number in Game("replay").play(start, (tmp_path / ".out.parquet.replay").exists, 2.0):
        wait_until(lambda: leftovers() == [])
        if number == signal.SIGKILL:
            succeeds(drivelab("replay", str(short), *arguments))
            assert len(read_outcome(out, ["issue_ns"])) == 50
        assert {path.name for path in tmp_path.glob(".*")} == set()
        out.unlink(missing_ok=True)


@pytest.mark.usefixtures("tracer_untouched")
def test_capture(run_directory: Path, device: str, tmp_path: Path) -> None:
    before, span, raw = tracer.state(), f"1000.{os.getpid()}", tmp_path / "raw"
    start = partial(drivelab, "capture", device, "-o", str(raw), "--", "sleep", span)
    for number in Game("capture").play(start, raw.exists, 2.0):
        guardian = number == signal.SIGKILL  # the guardian outlives the capture to clean up
        assert guardian or processes_with("sleep", span) == []
        assert guardian or tracer.state() == before
        wait_until(lambda: processes() == [])
        assert processes_with("sleep", span) == []
        assert tracer.state() == before
        assert not list(private.run_directory().glob("*.json"))
        if number == signal.SIGKILL and raw.exists():
            for path in raw.iterdir():
                path.unlink()
            raw.rmdir()
        assert not raw.exists(), "an incomplete capture would block the next capture"


def test_stage(study: FaultStudy) -> None:
    study.lengthen(20)
    done = study.condition()
    assert done.status == 0, done.output
    plan, kept = study.plan(), set[bytes]()
    for _ in Game("stage").play(study.start_measuring, lambda: processes("fio"), 2.0):
        wait_until(lambda: processes("fio") == processes("measure") == [])
        assert manage.status()[0].counters is not None, "the drive does not answer"
        kept |= set(kept_cells(plan).values())
    succeeds(study.start_measuring())
    assert complete(plan)
    assert altered(plan.recording_path) == {}
    assert kept <= set(evidence_of(plan).values()), "a finished cell is lost"


def test_run(study: FaultStudy) -> None:
    study.lengthen(20)
    plan, kept, of_killed = study.plan(), set[bytes](), set[str]()
    for number in Game("run").play(study.start_run, lambda: processes("measure"), 4.0):
        wait_until(lambda: processes("fio") == processes("measure") == processes("snakemake") == [])
        left = set(leftovers())
        if number == signal.SIGKILL:
            of_killed = left
        assert left <= of_killed, "only what a killed run left, if this one ended before it could stop it"
        kept |= set(kept_cells(plan).values())
    succeeds(study.start_run())
    wait_until(lambda: leftovers() == [])
    assert complete(plan)
    assert altered(plan.recording_path) == {}
    assert kept <= set(evidence_of(plan).values()), "a finished cell is lost"
    assert unfinished(study.folder / "results/one") == []
