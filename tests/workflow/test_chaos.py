"""A study with repeated kills and drive failures gives the same result as an undisturbed study.

Every kind of process is killed. The environment variables CHAOS_KILLS and CHAOS_SEED change the sequence.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from chaos import KINDS, ChaosStudy, Monkey

KILLS = int(os.environ.get("CHAOS_KILLS", "11"))
SEED = int(os.environ.get("CHAOS_SEED", "8"))


@pytest.mark.long
def test_a_study_killed_repeatedly_equals_the_undisturbed_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    print(f"CHAOS_SEED={SEED} CHAOS_KILLS={KILLS}")
    study = ChaosStudy(tmp_path / "project")
    study.keep_as_undisturbed()
    outcome = Monkey(study, SEED, KILLS).play()
    print(outcome)
    assert outcome.killed == KILLS
    if sum(KINDS.values()) <= KILLS:
        assert outcome.interrupted >= KILLS // 10, "some kills must hit cells"
        assert set(outcome.kills) == set(KINDS)
        assert outcome.faults >= 1
