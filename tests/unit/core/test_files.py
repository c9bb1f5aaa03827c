"""Files that are whole after a kill or a loss of power, work beside the caller, and pruned environments."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from drivelab.core import jobs, prune
from drivelab.core.behind import Behind
from drivelab.core.errors import UserError
from drivelab.core.files import mount_lines, sync_file_system, whole_folder, write_atomic


def test_content_is_on_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "seal.json", []
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append((file.name, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(path, "new")
    assert seen == [(".seal.json.part", "old"), (tmp_path.name, "new")]
    assert [file.name for file in tmp_path.iterdir()] == ["seal.json"]


def test_what_does_not_last_is_not_forced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: pytest.fail("fsync"))
    write_atomic(tmp_path / "status.json", b"now", lasting=False)
    assert (tmp_path / "status.json").read_bytes() == b"now"


def test_a_failed_sync_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "consent.json"
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        raise OSError("Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output error"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["consent.json"]


def test_the_files_of_a_job_are_on_disk_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(jobs, "sync_file_system", synced.append)
    with jobs.reported(str(tmp_path / "job.log")):
        (tmp_path / "table").touch()
        assert synced == []
    assert synced == [tmp_path]


def test_the_file_system_of_a_path_is_synchronised(tmp_path: Path) -> None:
    sync_file_system(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "missing")


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "figures"
    with suppress(ValueError), whole_folder(path) as folder:
        (folder / "half.svg").touch()
        raise ValueError
    assert not path.exists()
    for name in ("one.svg", "two.svg"):
        with whole_folder(path) as folder:
            (folder / name).touch()
        assert [file.name for file in sorted(tmp_path.rglob("*"))] == ["figures", name]


def test_a_job_ends_with_snakemake(tmp_path: Path) -> None:
    """Otherwise it would write the same files as the job of the next run."""
    os.mkfifo(tmp_path / "fifo")
    job = (
        "import os, signal, sys; from drivelab.core.jobs import reported\n"
        "with reported(sys.argv[1] + '/log'):\n"
        "    open(sys.argv[1] + '/fifo', 'w').write(str(os.getpid()))\n    signal.pause()"
    )
    start = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    snakemake = subprocess.Popen([sys.executable, "-c", start, job, str(tmp_path)])
    process = os.pidfd_open(int((tmp_path / "fifo").read_text()))
    snakemake.kill()
    snakemake.wait()
    assert select.select([process], [], [], 60)[0], "it still runs"
    os.close(process)


def test_calls_are_done_one_by_one_in_order_beside_the_caller() -> None:
    may_end, alone, done = threading.Event(), threading.Lock(), list[int]()

    def slow(number: int) -> None:
        assert alone.acquire(blocking=False)
        assert may_end.wait(60)
        done.append(number)
        alone.release()

    with Behind() as behind:
        behind.do(slow, 0)
        assert not done  # the caller continues
        may_end.set()
        for number in range(1, 5):
            behind.do(slow, number)
    assert done == [0, 1, 2, 3, 4]


def _fail(number: int) -> None:
    raise ValueError(number)


def test_the_next_call_raises_an_error_and_is_not_done() -> None:
    done: list[int] = []
    behind = Behind()
    with behind:
        behind.do(_fail, 0)
        with pytest.raises(ValueError, match="0"):
            behind.do(done.append, 1)
    assert not done


def test_the_end_raises_an_error() -> None:
    with pytest.raises(ValueError, match="0"), Behind() as behind:
        behind.do(_fail, 0)


def test_an_error_of_the_caller_comes_first() -> None:
    def caller() -> None:
        with Behind() as behind:
            behind.do(_fail, 0)
            raise KeyError

    with pytest.raises(KeyError):
        caller()


def test_a_mount_point_may_have_any_name(tmp_path: Path) -> None:
    lines = b"1 0 8:1 / /a\xff\x0c\r\x1cb rw - ext4 /dev/sda1 rw\n2 0 8:2 / /c\\040d rw - xfs /dev/sda2 rw\n"
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_bytes(lines)
    first, second = mount_lines(tmp_path)
    assert os.fsencode(first[4]) == b"/a\xff\x0c\r\x1cb"
    assert (second[4], second[second.index("-") + 1]) == ("/c\\040d", "xfs")


def test_tests_sources_and_solvers_leave_and_modules_stay(tmp_path: Path) -> None:
    leave = ["numpy/tests/test_a.py", "numpy/_core/include/a.h", "pulp/solverdir/cbc/cbc.exe",
             "pyarrow/libarrow_s3.so.2600", "pandas/__pycache__/a.pyc", "pyarrow/libarrow_python.so.2600.1.0",
             "a-1.dist-info/sboms/a.json"]  # fmt: skip
    stay = ["numpy/__init__.py", "pulp/__init__.py", "pyarrow/libarrow.so.2600", "pyarrow/libarrow_python.so.2600",
            "scipy/stats/a.py", "a-1.dist-info/METADATA", "numpy.libs/liba.so", "scipy.libs/liba.so",
            "drivelab/native/a.c", "drivelab/native/replay/a.h"]  # fmt: skip
    for name in (*leave, *stay):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    prune.prune(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(stay)
    assert (tmp_path / "numpy.libs/liba.so").samefile(tmp_path / "scipy.libs/liba.so")


def test_a_library_that_another_environment_links_stays_as_it_is(tmp_path: Path) -> None:
    library = next(Path(sys.prefix, "lib").glob("python3*/site-packages/kiwisolver/*.so"))
    (tmp_path / "package").mkdir()
    other, own = tmp_path / "a.so", tmp_path / "package/a.so"
    shutil.copy(library, other)
    os.link(other, own)
    before = other.read_bytes()
    prune.prune(tmp_path / "package")
    assert other.read_bytes() == before


def test_an_environment_with_other_packages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "prune", lambda folder: pytest.fail(f"pruned {folder}"))
    assert {"pytest", "mypy"} <= set(prune.strangers())
    with pytest.raises(UserError, match=r"also has .* Nothing was removed\. Install drivelab with pipx"):
        prune.main()
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(UserError, match="is not a virtual environment"):
        prune.main()


def test_packages_that_drivelab_needs_are_no_strangers() -> None:
    needed = {"drivelab", "numpy", "snakemake", "jinja2", "rpds-py", "typing-extensions", "sqlmodel"}
    assert not needed & set(prune.strangers())
