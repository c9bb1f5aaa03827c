"""A loss of power at any moment costs no finished evidence, and what continues equals what was not disturbed.

The environment variables POWER_IMAGES and POWER_SEED change the number of images of a whole study and the moments.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from chaos import ChaosStudy, tree
from chaos_results import essence, unfinished
from made_chain import STEPS, chain, plan_in, started
from power_loss import Camera, check_finished_is_final, continue_from, disk, final_digests, mounted

from drivelab.core.files import sync_file_system
from drivelab.recording.checksums import altered

pytestmark = [pytest.mark.device, pytest.mark.long]
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
