"""Scripts in forks behave as in a separate Python process each."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from drivelab.core.forks import Forks


@pytest.fixture
def forks() -> Iterator[Forks]:
    server = Forks(["fractions"])
    yield server
    server.end()


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return str(path)


def test_long_path_of_the_temporary_folder_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (deep := tmp_path / ("deep" * 30)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    forks = Forks([])
    forks.run(script(tmp_path, ""))
    forks.end()
    assert list(deep.iterdir()) == []


def test_script_finds_imported_modules_and_changes_nothing_for_the_next(forks: Forks, tmp_path: Path) -> None:
    text = (
        "import sys; open('{}', 'w').write(f\"{{'fractions' in sys.modules}} {{hasattr(sys, 'mark')}}\"); sys.mark = 1"
    )
    for name in ("first", "second"):
        forks.run(script(tmp_path, text.format(tmp_path / name)))
        assert (tmp_path / name).read_text() == "True False"


def test_function_runs_once_before_the_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    (tmp_path / "prepares.py").write_text(f"def prepare(): open({str(log)!r}, 'a').write('prepared ')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    forks = Forks([], "prepares:prepare")
    for _ in range(2):
        forks.run(script(tmp_path, f"open({str(log)!r}, 'a').write('script ')"))
    forks.end()
    assert log.read_text() == "prepared script script "


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('a sentence')", 1),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 1),
    ],
)
def test_failed_script_is_reported(forks: Forks, tmp_path: Path, text: str, status: int) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        forks.run(script(tmp_path, text))
    assert raised.value.returncode == status


def test_exit_without_status_or_with_0_is_success(forks: Forks, tmp_path: Path) -> None:
    for text in ("", "raise SystemExit", "import sys; sys.exit(0)"):
        forks.run(script(tmp_path, text))


def test_usage_counts_the_script_and_its_child_processes(forks: Forks, tmp_path: Path) -> None:
    spend = "import time\nwhile time.process_time() < 0.2: pass\n"
    used = forks.run(
        script(tmp_path, f"{spend}import subprocess, sys\nsubprocess.run([sys.executable, '-c', {spend!r}])")
    )
    assert used.cpu_s > 0.4
    assert used.most_mib > 1


def test_scripts_run_at_the_same_time(forks: Forks, tmp_path: Path) -> None:
    """Each waits for the other, so they would never end one after another."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "reads.py").write_text(f"open({str(tmp_path / 'fifo')!r}).read()")
    (tmp_path / "writes.py").write_text(f"open({str(tmp_path / 'fifo')!r}, 'w').write('x')")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(forks.run, [str(tmp_path / "reads.py"), str(tmp_path / "writes.py")]))


def test_killed_server_is_a_failure(forks: Forks, tmp_path: Path) -> None:
    os.kill(forks._server.pid, signal.SIGKILL)
    forks._server.wait()
    with pytest.raises(subprocess.CalledProcessError):
        forks.run(script(tmp_path, ""))


def test_server_ends_with_a_killed_client(tmp_path: Path) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", "from drivelab.core.forks import Forks; import signal\n"
         "forks = Forks([]); print(forks._server.pid, flush=True); signal.pause()"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert client.stdout is not None
    server = os.pidfd_open(int(client.stdout.readline()))
    client.kill()
    client.wait()

    assert select.select([server], [], [], 60)[0], "the server still runs"
    os.close(server)


def test_script_ends_with_a_killed_client(tmp_path: Path) -> None:
    """Otherwise it would write the same files as the script of the next run."""
    os.mkfifo(tmp_path / "fifo")
    waits = script(tmp_path, f"import signal\nopen({str(tmp_path / 'fifo')!r}, 'w').close()\nsignal.pause()")
    client = subprocess.Popen(
        [sys.executable, "-c", f"import os\nfrom drivelab.core.forks import Forks\nforks = Forks([])\n"
         f"print(forks._server.pid, flush=True)\nforks.run({waits!r})"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert client.stdout is not None
    server = int(client.stdout.readline())
    (tmp_path / "fifo").read_text()
    (fork,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    processes = [os.pidfd_open(int(fork)), os.pidfd_open(server)]
    client.kill()
    client.wait()
    for process in processes:
        assert select.select([process], [], [], 60)[0], "it still runs"
        os.close(process)


def test_cost_of_scripts_counts_for_their_parent(tmp_path: Path) -> None:
    """Memory and time of a whole run can then be measured from outside."""
    cost = "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    large = script(tmp_path, "b'x' * 500_000_000")
    code = f"from drivelab.core.forks import Forks; f = Forks([]); f.run({large!r}); f.end(); {cost}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) > 450_000
