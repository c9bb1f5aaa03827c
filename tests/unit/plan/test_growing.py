"""Key `runs` of a study that grows: its checks, its looks, and plans that do not depend on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drivelab.archive.kinds import is_kept
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.criteria.repeats import look_level
from drivelab.plan.design import LOOKS, Growth
from drivelab.plan.study import Study, load_study

STUDY = """\
name: mine
clock: virtual
drives: [op7, op28]
runs: {runs}
measurements:
  - {{protocol: pts-iops, scale: demo}}
  - {{protocol: pts-write-saturation, scale: demo, name: soak}}
"""
GROWS = "{least: 3, most: 5, until: decided}"


def study(runs: str = GROWS, more: str = "") -> Study:
    Path("config/mine.yaml").write_text(STUDY.format(runs=runs) + more)
    return load_study(Path("config/mine.yaml"))


def looks(text: str) -> None:
    path = Path("results/mine") / LOOKS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def looked(**runs: int) -> None:
    looks(json.dumps(Growth(3, 5).grown(runs, ("because",)).to_mapping()))


def planned() -> dict[str, str]:
    return {wanted.plan.recording: wanted.plan.digest for wanted in Campaign.load("config/mine.yaml").plans}


def test_a_growing_study_plans_the_runs_of_its_last_look(project: Path) -> None:
    assert (study().runs, len(planned())) == (3, 12)
    looked(**{"pts-iops": 4, "soak": 3})
    assert study().runs == 4
    assert {name for name in planned() if name.endswith("run4")} == {
        name for name in planned() if "/pts-iops/" in name and name.endswith("run4")
    }
    assert len(planned()) == 14
    looked(**{"pts-iops": 5, "soak": 3})
    of_looks = planned()
    study("5")
    assert of_looks.items() <= planned().items()  # names and digests are those of a fixed number of runs


def test_each_look_has_its_own_confidence(project: Path) -> None:
    assert study().verdict_confidence_pct == pytest.approx(100 - 100 * look_level(0.05, 3, 5, 3))
    looked(**{"pts-iops": 4, "soak": 3})
    grown = study(more="analysis: {confidence: 90%}\n")
    assert grown.verdict_confidence_pct == pytest.approx(100 - 100 * look_level(0.1, 3, 5, 4))
    assert study("3").verdict_confidence_pct == 95


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ("{least: 5, most: 5, until: decided}", "'most' must be larger"),
        ("{least: 2, most: 5, until: decided}", "runs"),
        ("{least: 3, most: 50, until: decided}", "runs"),
        ("{least: 3, most: 5, until: sure}", "runs"),
    ],
)
def test_impossible_numbers_are_refused(project: Path, runs: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        study(runs)


def test_another_plan_after_a_look_is_refused(project: Path) -> None:
    looked(**{"pts-iops": 4})
    with pytest.raises(UserError, match=r"3 to 6, but the looks so far counted on 3 to 5.*Restore the key"):
        study("{least: 3, most: 6, until: decided}")


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"least": 3, "most": 5, "looks": 1}', "[" * 100_000, '{"least": 3, "most": 5, "looks": [{}]}',
        '{"least": 3, "most": 5, "looks": [{"runs": {"a": 9}, "reasons": []}]}',
        '{"least": 3, "most": 5, "looks": [{"runs": {"a": Infinity}, "reasons": []}]}',
    ],
)  # fmt: skip
def test_damaged_looks_are_refused(project: Path, text: str) -> None:
    looks(text)
    with pytest.raises(UserError, match=r"looks.json: is damaged; delete it"):
        study()


def test_looks_are_written_as_they_are_read(project: Path) -> None:
    growth = Growth(3, 5).grown({"pts-iops": 4}, ("because",)).grown({"pts-iops": 5}, ("why", "again"))
    looks(json.dumps(growth.to_mapping()))
    assert study().growth == growth
    assert growth.facts(95)["reasons"] == ["because", "why", "again"]


def test_an_archive_keeps_the_looks() -> None:
    assert is_kept("results/mine/looks.json")
