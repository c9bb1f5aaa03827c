"""A loss of power at any moment costs no finished evidence, and the study then continues as if undisturbed.

The environment variables POWER_IMAGES and POWER_SEED change the number of images and their moments.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from chaos import ChaosStudy
from power_loss import check_finished_is_final, continue_from, disk, final_digests, images, mounted

from drivelab.core.files import sync_file_system

pytestmark = [pytest.mark.device, pytest.mark.long]
IMAGES = int(os.environ.get("POWER_IMAGES", "3"))
EVERY_S = 0.5
"""Mean time between two images; the measuring stages take 10 s and more."""
SEED = int(os.environ.get("POWER_SEED", "8"))


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_study_continues_from_any_moment(run_directory: Path, tmp_path: Path, kind: str) -> None:
    if shutil.which(f"mkfs.{kind}") is None:
        pytest.skip(f"no mkfs.{kind}")
    print(f"POWER_SEED={SEED} POWER_IMAGES={IMAGES}")
    image, folder = tmp_path / "disk", tmp_path / "project"
    with disk(image, kind, folder):
        study = ChaosStudy(folder, ["left"])
        study.undisturbed = tmp_path / "undisturbed"
        sync_file_system(folder)  # only what the study writes is lost
        taken = images(study, image, IMAGES, random.Random(f"{SEED} {kind}"), every_s=EVERY_S)
        shutil.copytree(study.results, study.undisturbed)
        final = final_digests(study.results)
    image.unlink()
    for copy in taken:
        with mounted(copy, folder):
            recordings, cells = check_finished_is_final(study.results, final)
            continue_from(study)
            repeated = study.check_equal()
        print(f"{kind} {copy.name}: {recordings} recordings and {cells} cells finished; repeated: {repeated}")
        copy.unlink()
