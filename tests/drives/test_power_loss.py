"""A loss of power at any moment costs no finished evidence, and what continues equals what was not disturbed.

The environment variables POWER_IMAGES and POWER_SEED change the number of images of a whole study and the moments.
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
from typing import Any

import pytest
from chaos import ChaosStudy, tree
from chaos_results import essence, unfinished
from made_chain import STEPS, chain, plan_in, started

from drivelab.core.files import sync_file_system
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


pytestmark = pytest.mark.device
IMAGES = int(os.environ.get("POWER_IMAGES", "3"))
IMAGES_OF_A_CHAIN = 20
SEED = int(os.environ.get("POWER_SEED", "8"))


@pytest.fixture(params=["ext4", "xfs"])
def kind(request: pytest.FixtureRequest, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system; skipped without its mkfs."""
    if shutil.which(f"mkfs.{request.param}") is None:
        pytest.skip(f"no mkfs.{request.param}")
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(run_directory.parent / "run"))  # or the image would count as left over
    print(f"POWER_SEED={SEED} POWER_IMAGES={IMAGES}")
    return str(request.param)


def test_a_chain_continues_from_any_moment(tmp_path: Path, kind: str) -> None:
    left = IMAGES_OF_A_CHAIN
    while left > 0:  # a chain lasts less than a second, and a busy machine takes few images of one
        left -= images_of_a_chain(tmp_path, kind, left)


def images_of_a_chain(tmp_path: Path, kind: str, at_most: int) -> int:
    """Continue a chain from images of its moments, and return how many images there were."""
    image, folder = tmp_path / "disk", tmp_path / "mounted"
    with disk(image, kind, folder):
        camera = Camera(image, random.Random(f"{SEED} {kind} {at_most}"), every_s=0.02)
        plan, results = plan_in(folder / "study", 5 * STEPS), folder / "study/results"
        sync_file_system(folder)  # only what the chain writes is lost
        child = started(lambda: chain(plan, folder / "study"))
        camera.watch(child, lambda: bool(tree(child)))
        assert os.waitpid(child, 0)[1] == 0
        final, undisturbed = final_digests(results), essence(plan.recording_path)
    image.unlink()
    images = camera.chosen(at_most)
    for copy in images:
        with mounted(copy, folder):
            recordings, lines = check_finished_is_final(results, final)
            chain(plan, folder / "study")
            assert essence(plan.recording_path) == undisturbed, copy.name
            assert altered(plan.recording_path) == {}
            assert unfinished(results) == []
        print(f"{kind} {copy.name}: {recordings} recordings and {lines} lines of another called finished")
        copy.unlink()
    return len(images)


def test_a_study_continues_from_any_moment(tmp_path: Path, kind: str) -> None:
    image, folder = tmp_path / "disk", tmp_path / "project"
    with disk(image, kind, folder):
        study = ChaosStudy(folder, ["left"])
        study.undisturbed = tmp_path / "undisturbed"
        sync_file_system(folder)  # only what the study writes is lost
        camera = Camera(image, random.Random(f"{SEED} {kind}"), every_s=0.5)

        def take(process: Any) -> None:
            camera.watch(process.pid, lambda: process.poll() is None)

        done = study.run(take)
        assert done.status == 0, done.output
        shutil.copytree(study.results, study.undisturbed)
        final = final_digests(study.results)
    image.unlink()
    images = camera.chosen(IMAGES)
    assert len(images) == IMAGES
    for copy in images:
        with mounted(copy, folder):
            recordings, lines = check_finished_is_final(study.results, final)
            continue_from(study)
            study.check_equal()
        print(f"{kind} {copy.name}: {recordings} recordings and {lines} lines of others called finished")
        copy.unlink()
