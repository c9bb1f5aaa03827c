"""The tracer's state, on a folder that looks like a tracing directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drivelab.errors import UserError
from drivelab.trace import ftrace
from drivelab.trace.ftrace import Ftrace

STATS = """entries: {entries}
overrun: {overrun}
commit overrun: 0
bytes: 0
oldest event ts:  1.5
dropped events: 0
read events: 9
"""


class Kernel:
    """A tracing directory of two CPUs; writes replace what is there."""

    def __init__(self, root: Path) -> None:
        self.tracing, self.run, self.device = root / "tracing", root / "run", root / "sda" / "trace"
        self.base = root / "out" / "trace"
        files = {
            "current_tracer": "nop\n", "available_tracers": "blk function nop\n", "set_event": "", "tracing_on": "1\n",
            "trace_clock": "[local] global mono\n", "saved_cmdlines": "12 kworker/0:1H\n77 a name\n",
            **{f"options/{name}": "1\n" if name != "bin" else "0\n" for name in ftrace.OPTIONS},
        }  # fmt: skip
        for cpu in (0, 1):
            size = "7 (expanded: 1408)\n" if cpu == 0 else "2000\n"
            files |= {f"per_cpu/cpu{cpu}/buffer_size_kb": size, f"per_cpu/cpu{cpu}/trace_pipe": f"data{cpu}",
                      f"per_cpu/cpu{cpu}/stats": STATS.format(entries=0, overrun=0)}  # fmt: skip
        for name, text in files.items():
            self.put(name, text)
        self.device.mkdir(parents=True)
        (self.device / "enable").write_text("0\n")
        self.base.parent.mkdir()

    def put(self, name: str, text: str) -> None:
        (self.tracing / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tracing / name).write_text(text)

    def get(self, name: str) -> str:
        return (self.tracing / name).read_text().strip()

    def state(self) -> dict[str, str]:
        names = ["current_tracer", "tracing_on", *(f"options/{name}" for name in ftrace.OPTIONS)]
        state = {name: self.get(name) for name in names}
        return state | {"enable": (self.device / "enable").read_text().strip()}

    def tracer(self) -> Ftrace:
        return Ftrace(self.device, self.base, self.tracing, self.run)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def test_a_capture_leaves_the_tracer_as_it_was(kernel: Kernel) -> None:
    before = kernel.state()
    tracer = kernel.tracer()
    tracer.start()
    assert kernel.get("current_tracer") == "blk"
    assert kernel.get("options/overwrite") == "0"
    assert kernel.get("trace_clock") == "mono"
    assert (kernel.device / "enable").read_text() == "1"
    lost = tracer.stop()
    assert kernel.state() == before
    assert kernel.get("trace_clock") == "local"
    assert [kernel.get(f"per_cpu/cpu{cpu}/buffer_size_kb") for cpu in (0, 1)] == ["1408", "2000"]
    assert sum(lost.values()) == 0
    assert [kernel.base.with_name(f"trace.blktrace.{cpu}").read_text() for cpu in (0, 1)] == ["data0", "data1"]
    assert tracer.processes() == {12: "kworker/0:1H", 77: "a name"}
    assert not (kernel.run / "ftrace.json").exists()


def test_losses_are_counted_over_all_cpus(kernel: Kernel) -> None:
    tracer = kernel.tracer()
    tracer.start()
    kernel.put("per_cpu/cpu0/stats", STATS.format(entries=2, overrun=5))
    kernel.put("per_cpu/cpu1/stats", STATS.format(entries=1, overrun=0))
    assert {kind: count for kind, count in tracer.stop().items() if count} == {"overrun": 5, "entries": 3}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("current_tracer", "function\n", "'function' is in use"),
        ("set_event", "sched:sched_switch\n", "sched:sched_switch"),
    ],
)
def test_someone_elses_trace_is_left_alone(kernel: Kernel, name: str, text: str, reason: str) -> None:
    kernel.put(name, text)
    before = kernel.state()
    with pytest.raises(UserError, match=reason):
        kernel.tracer().start()
    assert kernel.state() == before
    assert not (kernel.run / "ftrace.json").exists()


def test_someone_elses_trace_of_the_device_is_left_alone(kernel: Kernel) -> None:
    (kernel.device / "enable").write_text("1\n")
    with pytest.raises(UserError, match="sda is being traced by someone else"):
        kernel.tracer().start()
    assert (kernel.device / "enable").read_text() == "1\n"


def test_a_start_that_fails_half_way_is_undone(kernel: Kernel) -> None:
    before = kernel.state()
    (kernel.tracing / "per_cpu/cpu1/trace_pipe").unlink()
    with pytest.raises(UserError, match="trace_pipe is being read by someone else"):
        kernel.tracer().start()
    assert kernel.state() == before


def test_two_captures_at_once_are_refused(kernel: Kernel) -> None:
    first = kernel.tracer()
    first.start()
    with pytest.raises(UserError, match="one tracer only"):
        kernel.tracer().start()
    assert kernel.get("current_tracer") == "blk"
    first.abandon()
    assert kernel.get("current_tracer") == "nop"


def test_what_a_killed_capture_left_is_restored_by_the_next(kernel: Kernel) -> None:
    before = kernel.state()
    child = os.fork()
    if child == 0:
        kernel.tracer().start()
        os._exit(0)
    os.waitpid(child, 0)
    assert kernel.state() != before
    tracer = kernel.tracer()
    tracer.start()
    tracer.stop()
    assert kernel.state() == before


def test_a_journal_of_before_a_reboot_says_nothing_of_this_tracer(kernel: Kernel) -> None:
    kernel.run.mkdir()
    journal = kernel.run / "ftrace.json"
    body = {"boot_id": "another", "device_trace": str(kernel.device), "state": {"tracing_on": "0"}}
    journal.write_text(json.dumps(body))
    assert ftrace.recover(kernel.run, kernel.tracing)
    assert kernel.get("tracing_on") == "1"
    assert not journal.exists()
