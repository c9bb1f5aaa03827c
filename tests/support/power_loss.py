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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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


def images(study: ChaosStudy, image: Path, count: int, chance: random.Random, every_s: float) -> list[Path]:
    """Run a study to its end and return `count` images of its disk, taken at random moments after its first line.

    The moments are on average `every_s` apart; of more than `count`, a random choice is returned.
    """
    (loop,) = (device.name for device in Path("/sys/block").glob("loop*") if _backs(device, image))
    taken: list[Path] = []

    def take(process: Any) -> None:
        while process.poll() is None and not list(study.results.glob("recordings/*/*/*.part/journal.jsonl")):
            time.sleep(0.01)
        while process.poll() is None:
            time.sleep(chance.uniform(0, 2 * every_s))
            if process.poll() is None and (copy := _copy(process.pid, image, loop, len(taken))) is not None:
                taken.append(copy)

    done = study.run(take)
    assert done.status == 0, done.output
    assert len(taken) >= count, f"only {len(taken)} images of a study that was too short"
    chosen = sorted(chance.sample(range(len(taken)), count))
    for number, path in enumerate(taken):
        if number not in chosen:
            path.unlink()
    return [taken[number] for number in chosen]


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


def _copy(pid: int, image: Path, loop: str, number: int) -> Path | None:
    """Copy the image while all processes of a run are stopped; None if the run ends meanwhile."""
    target = image.with_name(f"{image.name}.{number:03}")
    while True:
        pids = list(tree(pid))
        for each in pids:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        try:
            before = _writes(loop)
            while (now := _writes(loop)) != before or now[1]:  # a write that had begun
                before = now
                time.sleep(0.02)
            subprocess.run(["cp", "--sparse=always", "--reflink=auto", image, target], check=True)
            if _writes(loop) == before and set(tree(pid)) == set(pids):
                return target
        finally:
            for each in pids:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGCONT)
        target.unlink()
        if not pids:
            return None
        time.sleep(0.05)


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
