"""A project on a file system of its own, of which images are taken as a loss of power would leave them.

The file system lies in an image file. What its page cache holds is not in that file: a copy of the file has what was
written to the disk until then, and nothing else. All processes are stopped during the copy, and it is repeated if the
kernel wrote to the disk meanwhile, so it is the disk of one moment.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos import ChaosStudy, tree

from drivelab.recording.checksums import altered, digests
from drivelab.recording.writer import MANIFEST, read_journal

SIZES = {"ext4": "192M", "xfs": "320M"}
"""Sizes of the file systems; mkfs.xfs makes none below 300 MiB."""
Digests = Mapping[str, Mapping[str, str]]
"""Digests of the files of each recording, by its path below `recordings`."""


@contextmanager
def disk(image: Path, kind: str, folder: Path) -> Iterator[None]:
    """Make a file system in the file `image` and mount it on `folder`."""
    with image.open("xb") as file:
        file.truncate(int(SIZES[kind].removesuffix("M")) << 20)
    quick = ["-E", "lazy_itable_init=0,lazy_journal_init=0"] if kind == "ext4" else []
    subprocess.run([f"mkfs.{kind}", "-q", *quick, image], check=True)
    with mounted(image, folder):
        yield


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[None]:
    """Mount the file system of an image; the kernel replays its journal first."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


class Camera:
    """Takes images of the disk in the file `image` while processes use it."""

    def __init__(self, image: Path, chance: random.Random, every_s: float) -> None:
        """Wait `every_s` on average between two images."""
        self._image, self._random, self._every_s = image, chance, every_s
        (self._loop,) = (device.name for device in Path("/sys/block").glob("loop*") if _backs(device, image))
        self.taken: list[Path] = []

    def watch(self, pid: int, at_work: Callable[[], bool]) -> None:
        """Take images of the disk of a process and those below it, while it is at work, and one after its end."""
        while at_work():
            time.sleep(self._random.uniform(0, 2 * self._every_s))
            self._take(pid)
        self._take(pid)

    def _take(self, pid: int) -> None:
        self.taken.append(_copy(pid, self._image, self._loop, len(self.taken)))

    def chosen(self, count: int) -> list[Path]:
        """Return at most `count` images, the last and others at random, in their order; remove the rest."""
        earlier = self.taken[:-1]
        kept = [*sorted(self._random.sample(earlier, min(count - 1, len(earlier)))), self.taken[-1]]
        for path in set(self.taken) - set(kept):
            path.unlink()
        return kept


def final_digests(results: Path) -> Digests:
    """Return the digests of all finished recordings."""
    top = results / "recordings"
    return {str(path.parent.relative_to(top)): digests(path.parent) for path in top.glob(f"*/*/*/{MANIFEST}")}


def check_finished_is_final(results: Path, final: Digests) -> tuple[int, int]:
    """Fail unless what an image calls finished is as it was in the end; return the numbers of recordings and cells.

    A recording is called finished by its final path, a cell by its line in the journal.
    """
    top, recordings, cells = results / "recordings", 0, 0
    for journal in sorted(top.glob("*/*/*/journal.jsonl")):
        folder = journal.parent
        name = str(folder.relative_to(top))
        if not name.endswith(".part"):
            assert altered(folder) == {}, name
            assert digests(folder) == final[name], name
            recordings += 1
            continue
        present = digests(folder)
        for line in read_journal(folder):
            if "directory" in line and line["event"] not in ("soak-begins", "failed"):
                inside = f"{line['directory']}/"
                expected = {path: digest for path, digest in final[name[: -len(".part")]].items() if inside in path}
                assert {path: digest for path, digest in present.items() if inside in path} == expected, (name, inside)
                cells += 1
    return recordings, cells


def _copy(pid: int, image: Path, loop: str, number: int) -> Path:
    """Copy the image while a process and all below it are stopped, or have ended."""
    target = image.with_name(f"{image.name}.{number:03}")
    while True:
        pids = list(tree(pid))
        for each in pids:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        try:
            before = _writes(loop)
            time.sleep(0.01)
            if _writes(loop) == before and before[1] == 0:
                subprocess.run(["cp", "--sparse=always", "--reflink=auto", image, target], check=True)
                if _writes(loop) == before and set(tree(pid)) == set(pids):
                    return target
                target.unlink()
        finally:
            for each in pids:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGCONT)
        time.sleep(0.02)


def _writes(loop: str) -> tuple[int, int]:
    """Return the number of writes of a loop device, and of those in flight."""
    stat = Path(f"/sys/block/{loop}/stat").read_text().split()
    return int(stat[4]) + int(stat[15]), sum(map(int, Path(f"/sys/block/{loop}/inflight").read_text().split()))


def _backs(device: Path, image: Path) -> bool:
    with suppress(OSError):
        return (device / "loop/backing_file").read_text().rstrip("\n") == str(image)
    return False


def continue_from(study: ChaosStudy) -> None:
    """Continue the study of a mounted image to its end."""
    for left in (study.folder / "tmp").glob("drivelab-*"):  # of the processes that the loss of power ended
        shutil.rmtree(left)
    done = study.run()
    assert done.status == 0, done.output
