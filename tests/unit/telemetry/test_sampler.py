"""The sampler is punctual, does not disturb, and never makes a measurement fail; its samples over a time span."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.telemetry import sampler as module
from drivelab.telemetry.sampler import NAME, Log, Sampler, Source, read_lines, read_samples
from drivelab.telemetry.time_window import Timeline


class Counted:
    """A source that counts its readings; a test can wait for one."""

    def __init__(self) -> None:
        self.count = 0
        self._new = threading.Condition()

    def read(self) -> dict[str, float]:
        with self._new:
            self.count += 1
            self._new.notify_all()
        return {"value": float(self.count)}

    def wait_for(self, count: int) -> None:
        with self._new:
            assert self._new.wait_for(lambda: self.count >= count, timeout=60)


def failing() -> dict[str, float]:
    raise OSError("no such sensor")


def events(recording: Path) -> list[str]:
    return [line["event"] for line in read_lines(recording) if "event" in line]


def test_a_fresh_sample_is_the_start_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FRESH_S", 600.0)
    monkeypatch.setattr(module, "FAST_S", 600.0)
    counted, thorough = Counted(), Counted()
    sources = [Source("a", counted.read, period_s=600, prompt=True), Source("b", thorough.read, period_s=None)]
    with Sampler(sources, tmp_path) as sampler:
        sampler.edge()
        sampler.begin_cell()
        assert (counted.count, thorough.count) == (2, 1)
        sampler.begin_cell(thorough=True)
        assert (counted.count, thorough.count) == (3, 2)


def test_samples_from_entering_to_leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FRESH_S", -1.0)
    monkeypatch.setattr(module, "FAST_S", 600.0)
    counted = Counted()
    with Sampler([Source("a", counted.read, period_s=0.01, prompt=True)], tmp_path) as sampler:
        before_s = sampler.now_s()
        sampler.begin_cell()
        sampler.edge()
        after_s = sampler.now_s()
    samples = list(read_samples(tmp_path))
    assert [sample["value"] for sample in samples] == [1.0, 2.0, 3.0, 4.0]
    assert samples[0]["at_s"] <= before_s <= samples[1]["at_s"] <= samples[2]["at_s"] <= after_s <= samples[3]["at_s"]
    assert events(tmp_path) == ["begin", "end"]


def test_samples_continue_periodically(tmp_path: Path) -> None:
    slow, once = Counted(), Counted()
    sources = [Source("slow", slow.read, period_s=0.01), Source("once", once.read, period_s=None)]
    with Sampler(sources, tmp_path):
        slow.wait_for(5)
    assert once.count == 2, "at the start and at the end"


def test_a_failing_source_is_reported_once_and_dropped(tmp_path: Path) -> None:
    good = Counted()
    sources = [Source("bad", failing, period_s=0.001), Source("good", good.read, period_s=0.02)]
    with Sampler(sources, tmp_path) as sampler:
        good.wait_for(4)
        for _ in range(5):
            sampler.edge(thorough=True)
    remarks = [line for line in read_lines(tmp_path) if line.get("source") == "bad"]
    assert [(line["event"], line["reason"]) for line in remarks] == [
        ("failed", "OSError: no such sensor"),
        ("dropped", "OSError: no such sensor"),
    ]


def test_one_failure_does_not_cost_a_source(tmp_path: Path) -> None:
    answers = iter([OSError("busy"), {"t": 1.0}, OSError("busy"), OSError("busy"), {"t": 2.0}, {"t": 3.0}])

    def read() -> dict[str, float]:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer  # type: ignore[return-value]

    with Sampler([Source("s", read, period_s=None)], tmp_path) as sampler:
        for _ in range(4):
            sampler.edge(thorough=True)
    assert [sample["t"] for sample in read_samples(tmp_path)] == [1.0, 2.0, 3.0]
    assert "dropped" not in events(tmp_path)


def test_a_hanging_source_delays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STUCK_S", 0.01)
    monkeypatch.setattr(module, "_END_S", 0.01)
    release, stuck, first = threading.Event(), threading.Event(), []

    def hang() -> dict[str, float]:
        if first:
            stuck.set()
            release.wait(60)
        first.append(1)
        return {"t": 1.0}

    prompt = Counted()
    sources = [Source("hangs", hang, period_s=0.001), Source("prompt", prompt.read, period_s=1.0, prompt=True)]
    with Sampler(sources, tmp_path) as sampler:
        assert stuck.wait(60)
        before = prompt.count
        sampler.edge(thorough=True)
        assert prompt.count > before
    release.set()
    assert events(tmp_path)[-1] == "end"


def test_a_failed_measurement_does_not_read_slow_sources_again(tmp_path: Path) -> None:
    once = Counted()
    with pytest.raises(KeyboardInterrupt), Sampler([Source("once", once.read, period_s=None)], tmp_path):
        raise KeyboardInterrupt
    assert once.count == 1
    assert events(tmp_path) == ["begin", "end"]


def test_without_sources_there_is_no_file(tmp_path: Path) -> None:
    with Sampler([], tmp_path) as sampler:
        sampler.begin_cell(thorough=True)
        sampler.edge()
    assert list(tmp_path.iterdir()) == []


def test_samples_in_memory_reach_back_a_little_before_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now_s[0])
    kept, not_kept = (Sampler([Source("a", lambda: {"a": 1.0}, prompt=True)], tmp_path) for _ in range(2))
    for sampler in (kept, not_kept):
        for now in (1000.0, 1100.0, 1150.0):
            now_s[0] = now
            sampler.begin_cell(keep=sampler is kept)
            sampler.edge()
    assert [sample["at_s"] - kept.unix_s(0.0) for sample in kept.kept()] == pytest.approx([1100, 1100, 1150, 1150])
    assert not_kept.kept() == []


def test_a_step_of_the_hosts_clock_moves_neither_samples_nor_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler([], tmp_path)
    before = sampler.unix_s(5.0)
    monkeypatch.setattr(module.time, "time", lambda: 0.0)
    assert sampler.unix_s(5.0) == before


def test_a_resumed_recording_is_appended_and_an_incomplete_line_is_dropped(tmp_path: Path) -> None:
    source: Callable[[], dict[str, float]] = lambda: {"a": 1.0}  # noqa: E731
    for _ in range(2):
        with Sampler([Source("a", source, prompt=True)], tmp_path):
            pass
        with (tmp_path / NAME).open("a") as file:
            file.write('{"at_s":1,"a":')
    assert len(list(read_samples(tmp_path))) == 4
    assert events(tmp_path) == ["begin", "end", "begin", "end"]


def test_a_full_disk_ends_the_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path / NAME)
    log.append({"at_s": 1.0})
    with monkeypatch.context() as patch:
        patch.setattr("drivelab.telemetry.sampler.os.write", lambda descriptor, data: 3)
        log.append({"at_s": 2.0})
    log.append({"at_s": 3.0})
    log.close()
    assert list(read_samples(tmp_path)) == [{"at_s": 1.0}]
    Log(tmp_path / "no/such/folder").append({"at_s": 1.0})


def test_a_recording_without_telemetry_has_no_samples(tmp_path: Path) -> None:
    assert list(read_samples(tmp_path)) == []


times = st.lists(st.floats(0, 1000), min_size=1, max_size=40, unique=True)


@given(times, st.floats(0, 1000), st.floats(0, 200), st.randoms())
def test_any_order_of_samples_gives_the_same(at: list[float], start_s: float, length_s: float, random: object) -> None:
    samples = [{"at_s": t, "temperature_c": t % 7, "media_errors": t} for t in at]
    shuffled = list(samples)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    wanted = Timeline(sorted(samples, key=lambda one: one["at_s"])).summarise(start_s, start_s + length_s)
    assert Timeline(shuffled).summarise(start_s, start_s + length_s) == pytest.approx(wanted)


@given(times, st.floats(0, 1000), st.floats(0, 200))
def test_every_sample_inside_counts_and_none_far_outside(at: list[float], start_s: float, length_s: float) -> None:
    end_s = start_s + length_s
    times, _ = Timeline({"at_s": t, "x": t} for t in at).around("x", start_s, end_s)
    assert {t for t in at if start_s <= t <= end_s} <= set(times)
    assert all(start_s - 15 <= t <= end_s + 15 for t in times)
    assert len([t for t in times if t < start_s]) <= 1
    assert len([t for t in times if t > end_s]) <= 1


@given(st.lists(st.floats(0, 5), min_size=2, max_size=30), st.integers(1, 28))
def test_the_rises_of_successive_cells_add_up(steps: list[float], cut: int) -> None:
    total, samples = 0.0, []
    for second, step in enumerate(steps):
        total += step
        samples.append({"at_s": float(second), "media_errors": total})
    timeline, last, cut = Timeline(samples), float(len(steps) - 1), min(cut, len(steps) - 1)
    whole = timeline.rise("media_errors", 0.0, last)
    parts = [timeline.rise("media_errors", a, b) for a, b in ((0.0, float(cut)), (float(cut), last)) if a < b]
    assert sum(part or 0.0 for part in parts) == pytest.approx(whole)
