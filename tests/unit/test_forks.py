"""Scripts in forks: what Python would do with them, each in a process of its own."""

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

from drivelab.forks import Forks


@pytest.fixture
def forks() -> Iterator[Forks]:
    one = Forks(["fractions"])
    yield one
    one.end()


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return str(path)


def test_a_deep_folder_for_temporary_files_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (deep := tmp_path / ("deep" * 30)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    one = Forks([])
    one.run(script(tmp_path, ""))
    one.end()
    assert list(deep.iterdir()) == []


def test_a_script_finds_what_is_imported_and_leaves_nothing_to_the_next(forks: Forks, tmp_path: Path) -> None:
    text = (
        "import sys; open('{}', 'w').write(f\"{{'fractions' in sys.modules}} {{hasattr(sys, 'mark')}}\"); sys.mark = 1"
    )
    for name in ("first", "second"):
        forks.run(script(tmp_path, text.format(tmp_path / name)))
        assert (tmp_path / name).read_text() == "True False"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('a sentence')", 1),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 1),
    ],
)
def test_a_script_that_fails_is_told_of(forks: Forks, tmp_path: Path, text: str, status: int) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        forks.run(script(tmp_path, text))
    assert raised.value.returncode == status


def test_leaving_with_nothing_or_nought_is_no_failure(forks: Forks, tmp_path: Path) -> None:
    for text in ("", "raise SystemExit", "import sys; sys.exit(0)"):
        forks.run(script(tmp_path, text))


def test_scripts_run_at_the_same_time(forks: Forks, tmp_path: Path) -> None:
    """Each waits for the other: they would never end one after another."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "reads.py").write_text(f"open({str(tmp_path / 'fifo')!r}).read()")
    (tmp_path / "writes.py").write_text(f"open({str(tmp_path / 'fifo')!r}, 'w').write('x')")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(forks.run, [str(tmp_path / "reads.py"), str(tmp_path / "writes.py")]))


def test_a_server_that_was_killed_is_a_failure(forks: Forks, tmp_path: Path) -> None:
    os.kill(forks._server.pid, signal.SIGKILL)
    forks._server.wait()
    with pytest.raises(subprocess.CalledProcessError):
        forks.run(script(tmp_path, ""))


def test_the_server_ends_with_who_made_it_even_if_that_is_killed(tmp_path: Path) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", "from drivelab.forks import Forks; import signal\n"
         "forks = Forks([]); print(forks._server.pid, flush=True); signal.pause()"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert client.stdout is not None
    server = os.pidfd_open(int(client.stdout.readline()))
    client.kill()
    client.wait()

    assert select.select([server], [], [], 60)[0], "the server still runs"
    os.close(server)


def test_a_script_ends_with_a_client_that_is_killed(tmp_path: Path) -> None:
    """Going on, it would write what the same script of the next run writes."""
    os.mkfifo(tmp_path / "fifo")
    waits = script(tmp_path, f"import signal\nopen({str(tmp_path / 'fifo')!r}, 'w').close()\nsignal.pause()")
    client = subprocess.Popen(
        [sys.executable, "-c", f"import os\nfrom drivelab.forks import Forks\nforks = Forks([])\n"
         f"print(forks._server.pid, flush=True)\nforks.run({waits!r})"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert client.stdout is not None
    server = int(client.stdout.readline())
    (tmp_path / "fifo").read_text()
    (fork,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    ends = [os.pidfd_open(int(fork)), os.pidfd_open(server)]
    client.kill()
    client.wait()
    for one in ends:
        assert select.select([one], [], [], 60)[0], "it still runs"
        os.close(one)


def test_what_scripts_cost_is_told_of_them_as_of_all_children(tmp_path: Path) -> None:
    """So that memory and time of a whole run can be measured from outside."""
    cost = "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    large = script(tmp_path, "b'x' * 500_000_000")
    done = subprocess.run(
        [sys.executable, "-c", f"from drivelab.forks import Forks; f = Forks([]); f.run({large!r}); f.end(); {cost}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) > 450_000
