"""What is refused before a job, and how facts of an analysis, locks and lost files are noticed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grimp
import pytest
from waits import wait_until

from drivelab.campaign import check
from drivelab.campaign.planning import Campaign
from drivelab.core import heartbeat
from drivelab.core.errors import UserError
from drivelab.core.heartbeat import SILENT_S
from drivelab.plan.hosts import this_host
from drivelab.plan.places import RESTORED_MARKER, ROOT
from drivelab.plan.plan import Plan
from drivelab.recording.folders import RUN_LOCK, is_recorded
from drivelab.recording.writer import Recording
from drivelab.replay import native
from drivelab.run.study_lock import hold
from drivelab.trace.capturing.capture_report import boot_id
from drivelab.workflow import facts as module
from drivelab.workflow.facts import ALWAYS, Facts, digest
from drivelab.workflow.load import load

REPLAY = {"engine": "native", "prefill": "none"}


def plan(clock: str, *steps: dict[str, Any]) -> Plan:
    return Plan({"clock": clock, "measure": list(steps)}, {"measurement": "m"})


@pytest.fixture(autouse=True)
def _host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "possible", lambda: "io_uring is not permitted here")
    monkeypatch.setattr(check, "fio_version", lambda: "3.33")


@pytest.mark.parametrize("step", [{"replay": REPLAY}])
def test_steps_that_need_the_native_engine_are_refused_without_it(step: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="m needs drivelab's native replay engine, but io_uring is not permitted"):
        check.check_engines([plan("wall", {"idle": {}}, step)])


@pytest.mark.parametrize(
    "accepted",
    [
        plan("virtual", {"replay": REPLAY}),
        plan("wall", {"loop": {"cells": []}}, {"loop": {"streams": {"kind": "individual"}}}),
    ],
)
def test_other_steps_are_accepted_without_the_native_engine(accepted: Plan) -> None:
    check.check_engines([accepted])


def test_fio_is_required_only_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise UserError("fio is not installed")

    monkeypatch.setattr(check, "fio_version", missing)
    check.check_engines([plan("virtual", {"soak": {}})])
    with pytest.raises(UserError, match="fio is not installed"):
        check.check_engines([plan("wall", {"soak": {}})])


RULES = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
SOURCES = re.findall(r'"(\w+\.py [^"]+)"', re.sub(r'"\n +"', "", RULES))
"""The scripts and packages of each analysis, as its rule names them."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("drivelab")


def used(script: Path, imports: grimp.ImportGraph) -> set[str]:
    """Return the modules of drivelab that a script imports, and those that they import."""
    nodes = (node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.ImportFrom))
    direct = {name for node in nodes for name in (node.module, *(f"{node.module}.{to.name}" for to in node.names))}
    direct &= imports.modules
    return direct.union(*(imports.find_upstream_modules(name) for name in direct))


@pytest.mark.parametrize("call", SOURCES)
def test_a_digest_covers_all_that_its_script_imports(imports: grimp.ImportGraph, call: str) -> None:
    sources = call.split()
    covered = tuple(f"drivelab.{name}." for name in (*ALWAYS, *sources))
    for script in (name for name in sources if name.endswith(".py")):
        modules = used(ROOT / "scripts" / script, imports) - {"drivelab", "drivelab.workflow"}
        assert {name for name in modules if not f"{name}.".startswith(covered)} == set()


def test_files_and_versions_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room/inner").mkdir(parents=True)
    for name in ("core", "criteria", "plan", "recording", "tables", "workflow"):
        (tmp_path / name).mkdir()
    for name in ("room/a.py", "room/inner/template.css", "single.py", "workflow/facts.py"):
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(module, "_LIBRARY", tmp_path)

    def now(*sources: str) -> str:
        module._of.cache_clear()
        module._versions.cache_clear()
        return digest(*sources)

    seen = [now("room"), now("single")]
    (tmp_path / "room/inner/template.css").write_text("2")
    seen.append(now("room"))
    (tmp_path / "room/a.py").rename(tmp_path / "room/b.py")
    seen.append(now("room"))
    monkeypatch.setattr(module, "version", lambda name: "9")
    seen.append(now("room"))
    assert len(set(seen)) == len(seen)
    with pytest.raises(ValueError, match="no package or module 'rom'"):
        now("rom")


def test_every_script_of_the_workflow_has_facts() -> None:
    named = {name for call in SOURCES for name in re.findall(r"\w+\.py", call)}
    assert named == {path.name for path in (ROOT / "scripts").glob("*.py")} - {"facts.py"}


def test_changed_facts_are_another_and_the_only_file(tmp_path: Path) -> None:
    facts, paths = Facts(str(tmp_path)), []
    for limit in (1, 2, 1):
        path = Path(facts.of("tables", {"limit": limit}, "tables.py collect"))
        name, _, mark = path.stem.partition("-")
        module.write(facts.text(SimpleNamespace(analysis=name, digest=mark)), path)
        module.write("{}", path.with_name("report-0123456789abcdef.json"))
        assert module.read(path) == {"limit": limit}
        paths.append(path)
        assert {path.name, "report-0123456789abcdef.json"} == {file.name for file in path.parent.iterdir()}
    assert paths[0] == paths[2] != paths[1]
    assert Facts(str(tmp_path), in_job=True).of("tables", {"limit": 9}, "tables.py") == str(paths[2])


LOCK = """\
import os, sys, pathlib
from drivelab.run.study_lock import hold
lock = hold(pathlib.Path(sys.argv[1]), 'mine')
"""
HOLD = f"{LOCK}print(lock)"


def test_a_second_run_is_refused_and_says_who_runs(tmp_path: Path) -> None:
    lock = hold(tmp_path / "results", "mine")
    assert lock is not None
    with pytest.raises(UserError, match=rf"study 'mine' is being run .* by process {os.getpid()} on .*, since 20"):
        hold(tmp_path / "results", "mine")
    lock.ended_in_order()
    again = hold(tmp_path / "results", "mine")
    assert again is not None
    assert not again.interrupted


def test_a_snakemake_of_drivelab_run_shares_its_lock(tmp_path: Path) -> None:
    lock = hold(tmp_path, "mine")
    done = subprocess.run([sys.executable, "-c", HOLD, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
    between = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"
    command = [sys.executable, "-c", between, HOLD, str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "is being run" in refused.stderr
    assert lock is not None


@pytest.mark.parametrize("in_order", [True, False])
def test_an_interrupted_run_is_known(tmp_path: Path, in_order: bool) -> None:
    end = "lock.ended_in_order()" if in_order else "os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", LOCK + end, str(tmp_path)], check=in_order)
    assert ((tmp_path / RUN_LOCK).read_text() == "") is in_order
    lock = hold(tmp_path, "mine")
    assert lock is not None
    assert lock.interrupted is not in_order


def elsewhere(results: Path, silent_s: float, boot: str = "another-boot", host: str = "another-host") -> None:
    """Leave the lock of a run in a kernel that shares the folder, but not its locks."""
    results.mkdir(exist_ok=True)
    path = results / RUN_LOCK
    path.write_text(f"process 7 on {host}, since 2026-11-30 00:00 UTC\n{host} {boot} 7 1234@4026531836")
    os.utime(path, (time.time() - silent_s,) * 2)


def test_a_run_on_another_machine_is_not_taken_for_an_interrupted_one(tmp_path: Path) -> None:
    elsewhere(tmp_path, 20)
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"is being run by process 7 on another-host, since .* 2\d s ago; wait for it"
        ):
            hold(tmp_path, "mine")
    elsewhere(tmp_path, SILENT_S + 5)
    lock = hold(tmp_path, "mine")
    assert lock is not None
    assert lock.interrupted
    lock.ended_in_order(began=False)
    lock = hold(tmp_path, "mine")
    assert lock is not None, "the time of its last sign of life stays, too"


@pytest.mark.parametrize("known", [{"boot": boot_id()}, {"host": this_host()}])
def test_this_kernels_lock_decides_about_its_own_processes(tmp_path: Path, known: dict[str, str]) -> None:
    """A container has another host name and PID namespace, but the same kernel; after a reboot its name is the same."""
    elsewhere(tmp_path, 0, **known)
    lock = hold(tmp_path, "mine")
    assert lock is not None
    assert lock.interrupted


def test_a_run_shows_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PERIOD_S", 0.01)
    lock = hold(tmp_path, "mine")
    assert lock is not None
    os.utime(tmp_path / RUN_LOCK, (0, 0))
    wait_until(lambda: (tmp_path / RUN_LOCK).stat().st_mtime > 0)
    lock.ended_in_order()


@pytest.mark.parametrize("place", [2, 3])
def test_only_the_parent_itself_shares_its_lock(tmp_path: Path, place: int) -> None:
    """Others may start in the same moment, or have the parent's number in a container of the same name."""
    lock = hold(tmp_path, "mine")
    assert lock is not None
    who, process = (tmp_path / RUN_LOCK).read_text().split("\n")
    parts = process.split(" ")
    parts[place] += "1"
    (tmp_path / RUN_LOCK).write_text(f"{who}\n{' '.join(parts)}")
    done = subprocess.run([sys.executable, "-c", HOLD, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "is being run" in done.stderr


def test_a_run_that_never_began_keeps_the_trace_of_the_one_before(tmp_path: Path) -> None:
    (tmp_path / RUN_LOCK).write_text("process 1 on a, since then")
    for _ in range(2):
        lock = hold(tmp_path, "mine")
        assert lock is not None
        assert lock.interrupted
        lock.ended_in_order(began=False)


def test_studies_have_separate_locks(tmp_path: Path) -> None:
    locks = [hold(tmp_path / name, name) for name in ("one", "one-more", "one/other-study")]
    assert None not in locks


def test_the_command_does_not_import_snakemake() -> None:
    code = "import sys, drivelab.cli.main, drivelab.cli.measure.runner; sys.exit('snakemake' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


STUDY = """\
name: torn
results: results
clock: virtual
drives: [op7, op28]
measurements: [{protocol: pts-iops, scale: demo}]
"""


@pytest.fixture
def plans(project: Path) -> list[Plan]:
    """Two recorded plans; the checksums of the first are empty."""
    (project / "study.yaml").write_text(STUDY)
    plans = [planned.plan for planned in Campaign.load("study.yaml").plans]
    for plan in plans:
        recording = Recording(plan)
        recording.open()
        recording.append("cell", step=0)
        recording.finish()
    (plans[0].recording_path / "SHA256SUMS").write_bytes(b"")
    return plans


def test_it_is_set_aside_and_named(plans: list[Plan], capsys: pytest.CaptureFixture[str]) -> None:
    layout, _, _ = load({"study": "study.yaml"})  # a job, or a look at the study
    assert list(map(is_recorded, plans)) == [True, True]
    with pytest.raises(UserError, match="start again to measure them again"):
        layout.claim()
    assert list(map(is_recorded, plans)) == [False, True]
    assert load({"study": "study.yaml"})[0].campaign.to_do == plans[:1]
    name = plans[0].recording
    assert capsys.readouterr().err == (
        f"drivelab: {name}: is not whole: SHA256SUMS is empty, as after a loss of power. It is measured again; the "
        f"rest is in results/recordings/{name}.abandoned-1.\n"
    )


def test_that_of_an_archive_stays(plans: list[Plan], project: Path) -> None:
    (project / RESTORED_MARKER).touch()
    load({"study": "study.yaml"})[0].claim()
    assert list(map(is_recorded, plans)) == [True, True]
