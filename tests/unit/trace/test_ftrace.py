"""Ftrace capture and tracer state, on an imitated tracing directory."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import ring_pages
from ring_pages import HEADER_PAGE, Event

from drivelab.core.errors import UserError
from drivelab.trace.capturing import disk, ftrace, tracer
from drivelab.trace.capturing.capture_report import boot_id, counted
from drivelab.trace.capturing.disk import Disk
from drivelab.trace.capturing.ftrace import Ftrace


class Kernel:
    """An imitated tracing directory of two CPUs and a device."""

    def __init__(self, root: Path) -> None:
        self.tracing, self.run = root / "tracing", root / "run"
        self.disk = Disk("sda")
        self.device = self.disk.trace
        self.base = root / "out" / "trace"
        files: dict[str, str] = {
            "current_tracer": "nop\n", "available_tracers": "blk function nop\n", "set_event": "", "tracing_on": "1\n",
            "trace_clock": "[local] global mono\n", "saved_cmdlines": "12 kworker/0:1H\n77 a name\n",
            "saved_cmdlines_size": "128\n", "tracing_cpumask": "1\n", "events/header_page": HEADER_PAGE,
            **{f"options/{name}": "1\n" for name in tracer.OPTIONS},
        }  # fmt: skip
        for cpu in (0, 1):
            size = "7 (expanded: 1408)\n" if cpu == 0 else "2000\n"
            files |= {f"per_cpu/cpu{cpu}/buffer_size_kb": size, f"per_cpu/cpu{cpu}/trace_pipe": "",
                      f"per_cpu/cpu{cpu}/stats": stats(read=events_of(cpu))}  # fmt: skip
        for name, text in files.items():
            self.put(name, text)
        for cpu in (0, 1):
            (self.tracing / f"per_cpu/cpu{cpu}/trace_pipe_raw").write_bytes(ring_pages.pages(ring_of(cpu)))
        self.device.mkdir(parents=True)
        for name, text in {"enable": "0", "act_mask": "disabled", "start_lba": "0", "end_lba": "0", "pid": "0"}.items():
            (self.device / name).write_text(f"{text}\n")
        (self.device.parent / "dev").write_text("8:0\n")
        self.base.parent.mkdir()

    def put(self, name: str, text: str) -> None:
        (self.tracing / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tracing / name).write_text(text)

    def get(self, name: str) -> str:
        return (self.tracing / name).read_text().strip()

    def state(self) -> dict[str, str]:
        names = ["current_tracer", "tracing_on", "tracing_cpumask", "saved_cmdlines_size"]
        state = {name: self.get(name) for name in [*names, *(f"options/{name}" for name in tracer.OPTIONS)]}
        return state | {"enable": (self.device / "enable").read_text().strip()}

    def tracer(self) -> Ftrace:
        return Ftrace(self.disk, self.base)


def stats(entries: int = 0, overrun: int = 0, read: int = 0, used: int = 0) -> str:
    return (
        f"entries: {entries}\noverrun: {overrun}\ncommit overrun: 0\nbytes: {used}\noldest event ts:  1.5\n"
        f"now ts: 2.5\ndropped events: 0\nread events: {read}\n"
    )


def events_of(cpu: int) -> int:
    return 100 * (cpu + 1)


def ring_of(cpu: int) -> list[Event]:
    payload = ring_pages.record(7, 8 << 20, sector=cpu, action=0x20008)
    return [Event(index, payload) for index in range(events_of(cpu))]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(tracer, "TRACING", tmp_path / "tracing")
    monkeypatch.setattr(disk, "SYS_BLOCK", tmp_path / "block")
    return Kernel(tmp_path)


def test_a_capture_restores_the_tracer(kernel: Kernel) -> None:
    before = kernel.state()
    capture = kernel.tracer()
    capture.start()
    assert kernel.get("current_tracer") == "blk"
    assert kernel.get("options/overwrite") == "0"
    assert kernel.get("trace_clock") == "mono"
    assert (kernel.device / "enable").read_text() == "1"
    lost = capture.stop()
    assert kernel.state() == before
    assert kernel.get("trace_clock") == "local"
    assert [kernel.get(f"per_cpu/cpu{cpu}/buffer_size_kb") for cpu in (0, 1)] == ["1408", "2000"]
    assert sum(lost.values()) == 0
    assert [kernel.base.with_name(f"trace.blktrace.{cpu}").stat().st_size for cpu in (0, 1)] == [4800, 9600]
    assert list(kernel.base.parent.glob("*.ring.*")) == []
    counts = counted(kernel.base)
    assert (counts.by_cpu, counts.completions) == ({0: 100, 1: 200}, 300)
    assert capture.processes == {12: "kworker/0:1H", 77: "a name"}
    assert not (kernel.run / "ftrace.json").exists()


def test_a_killed_capture_is_undone(kernel: Kernel) -> None:
    (kernel.device / "enable").write_text("1")
    body = {"boot_id": boot_id(), "device_trace": str(kernel.device), "state": {"tracing_on": "1"}}
    kernel.run.mkdir()
    (kernel.run / "ftrace.json").write_text(json.dumps(body))
    tracer.recover()
    assert (kernel.device / "enable").read_text().strip() == "0"


def losses(capture: Ftrace) -> dict[str, int]:
    return {kind: count for kind, count in capture.stop().items() if count}


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"per_cpu/cpu0/stats": stats(entries=2, overrun=5, read=100),
          "per_cpu/cpu1/stats": stats(entries=1, read=200)}, {"overrun": 5, "entries": 3}),
        ({"per_cpu/cpu0/stats": stats(read=103)}, {"read_by_others": 3}),
        ({"tracing_on": "0\n"}, {"tracer_changed": 1}),
        ({"trace_clock": "[global]\n"}, {"tracer_changed": 1}),
        ({"options/overwrite": "1\n"}, {"tracer_changed": 1}),
        ({"per_cpu/cpu1/buffer_size_kb": "4\n"}, {"tracer_changed": 1}),
        ({"set_event": "sched:sched_switch\n"}, {"tracer_changed": 1}),
        ({"current_tracer": "function\n"}, {"tracer_changed": 1}),
    ],
)  # fmt: skip
def test_losses_and_changes_during_a_capture_are_counted(
    kernel: Kernel, changes: dict[str, str], lost: dict[str, int]
) -> None:
    capture = kernel.tracer()
    capture.start()
    for name, text in changes.items():
        kernel.put(name, text)
    assert losses(capture) == lost
    if "tracer_changed" in lost:
        assert capture.remarks[0].startswith(f"{next(iter(changes))} changed from '")


def test_a_disabled_device_trace_is_detected(kernel: Kernel) -> None:
    capture = kernel.tracer()
    capture.start()
    (kernel.device / "enable").write_text("0\n")
    assert losses(capture) == {"tracer_changed": 1}


def test_another_programs_tracer_is_kept_at_the_end(kernel: Kernel) -> None:
    capture = kernel.tracer()
    capture.start()
    kernel.put("current_tracer", "function\n")
    capture.stop()
    assert kernel.get("current_tracer") == "function"
    assert kernel.get("options/overwrite") == "1"


def test_the_tracer_is_restored_if_the_device_disappears(kernel: Kernel) -> None:
    before = {name: kernel.get(name) for name in ("current_tracer", "tracing_on")}
    capture = kernel.tracer()
    capture.start()
    shutil.rmtree(kernel.device.parent)
    assert losses(capture) == {}
    assert {name: kernel.get(name) for name in before} == before
    assert counted(kernel.base).events == 300


def test_a_ring_is_read_only_above_half_full(kernel: Kernel) -> None:
    capture = kernel.tracer()
    capture.start()
    size = capture.cost().buffer_bytes_per_cpu
    kernel.put("per_cpu/cpu0/stats", stats(used=size // 2, read=100))
    capture.poll()
    assert (capture.cost().drains, capture.cost().buffer_fill_max) == (0, 0.5)
    kernel.put("per_cpu/cpu0/stats", stats(used=size // 2 + 4096, read=100))
    capture.poll()
    assert capture.cost().drains == 1
    assert losses(capture) == {}
    assert counted(kernel.base).events == 300


@pytest.mark.parametrize(
    ("available_kib", "cpus", "kib"),
    [(8 << 20, 2, 128 << 10), (1 << 20, 4, 32 << 10), (1 << 10, 64, 1 << 10), (0, 1, 1 << 10)],
)
def test_rings_are_a_bounded_share_of_free_memory(available_kib: int, cpus: int, kib: int) -> None:
    assert ftrace.ring_kib(available_kib, cpus) == kib


@pytest.mark.parametrize(("cpus", "mask"), [([0], "00000001"), ([0, 1, 35], "00000008,00000003")])
def test_the_cpu_mask_has_the_kernels_format(cpus: list[int], mask: str) -> None:
    assert ftrace._mask(cpus) == mask


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("current_tracer", "function\n", "uses the kernel's tracer 'function'"),
        ("set_event", "sched:sched_switch\n", "sched:sched_switch"),
    ],
)
def test_another_programs_trace_is_refused(kernel: Kernel, name: str, text: str, reason: str) -> None:
    kernel.put(name, text)
    before = kernel.state()
    with pytest.raises(UserError, match=reason):
        kernel.tracer().start()
    assert kernel.state() == before
    assert not (kernel.run / "ftrace.json").exists()


def test_another_programs_trace_of_the_device_is_refused(kernel: Kernel) -> None:
    (kernel.device / "enable").write_text("1\n")
    with pytest.raises(UserError, match="another program traces sda"):
        kernel.tracer().start()
    assert (kernel.device / "enable").read_text() == "1\n"


def test_a_failed_start_is_undone(kernel: Kernel) -> None:
    before = kernel.state()
    (kernel.tracing / "per_cpu/cpu1/trace_pipe").unlink()
    with pytest.raises(UserError, match="trace_pipe is read by another process"):
        kernel.tracer().start()
    assert kernel.state() == before


def test_concurrent_captures_are_refused(kernel: Kernel) -> None:
    first = kernel.tracer()
    first.start()
    with pytest.raises(UserError, match="one tracer only"):
        kernel.tracer().start()
    assert kernel.get("current_tracer") == "blk"
    first.abandon()
    assert kernel.get("current_tracer") == "nop"


def test_the_next_capture_restores_after_a_killed_one(kernel: Kernel) -> None:
    before = kernel.state()
    child = os.fork()
    if child == 0:
        kernel.tracer().start()
        os._exit(0)
    os.waitpid(child, 0)
    assert kernel.state() != before
    capture = kernel.tracer()
    capture.start()
    capture.stop()
    assert kernel.state() == before


def test_a_journal_from_before_a_reboot_is_ignored(kernel: Kernel) -> None:
    kernel.run.mkdir()
    journal = kernel.run / "ftrace.json"
    body = {"boot_id": "another", "device_trace": str(kernel.device), "state": {"tracing_on": "0"}}
    journal.write_text(json.dumps(body))
    tracer.recover()
    assert kernel.get("tracing_on") == "1"
    assert not journal.exists()
