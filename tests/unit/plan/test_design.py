"""Combinations, runs and growth of a study, and what leaves other plans unchanged."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.archive.kinds import is_kept
from drivelab.campaign.planning import Campaign
from drivelab.campaign.study_facts import broken_level
from drivelab.campaign.study_facts import looks as history_of
from drivelab.core.errors import UserError
from drivelab.criteria.repeats import look_level
from drivelab.plan.design import JUDGED, LOOKS, NO_PLATFORM, Design, Growth
from drivelab.plan.study import Study, load_study
from drivelab.plan.study_parts import MeasurementChoice
from drivelab.recording.writer import write_json

DRIVES, MEASUREMENTS, PLATFORMS = ("a", "b", "c"), ("m", "n"), ("p", "q")


def choice(name: str, drives: tuple[str, ...] = DRIVES) -> MeasurementChoice:
    return MeasurementChoice("pts-iops", name, None, (), drives, {}, "key")


def resolve(
    exclude: list[dict[str, list[str]]] = [],  # noqa: B006 - never modified
    include: list[dict[str, object]] = [],  # noqa: B006
    *,
    choices: tuple[MeasurementChoice, ...] = (choice("m"), choice("n")),
    platforms: tuple[str, ...] = (),
) -> dict[tuple[str, str, str], int]:
    resolved = Design("s.yaml", choices, DRIVES, platforms, 1).resolve(exclude, include)
    return {
        (planned_choice.name, drive, platform): runs
        for planned_choice in resolved
        for (drive, platform), runs in planned_choice.runs.items()
    }


def subsets(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=1, unique=True)


entries = st.fixed_dictionaries(
    {}, optional={"drives": subsets(DRIVES), "measurements": subsets(MEASUREMENTS), "platforms": subsets(PLATFORMS)}
)


@given(entries)
def test_an_exclusion_removes_exactly_the_matching_combinations(entry: dict[str, list[str]]) -> None:
    whole = set(product(MEASUREMENTS, DRIVES, PLATFORMS))
    gone = {
        (m, d, p)
        for m, d, p in whole
        if m in entry.get("measurements", [m]) and d in entry.get("drives", [d]) and p in entry.get("platforms", [p])
    }
    if gone == whole:
        with pytest.raises(UserError, match="removes every"):
            resolve([entry], platforms=PLATFORMS)
    else:
        assert resolve([entry], platforms=PLATFORMS) == dict.fromkeys(whole - gone, 1)


@given(entries)
def test_an_inclusion_changes_only_the_named_runs(entry: dict[str, list[str]]) -> None:
    runs = resolve(include=[{**entry, "runs": 3}], platforms=PLATFORMS)
    assert runs == {
        (m, d, p): 3
        if m in entry.get("measurements", [m]) and d in entry.get("drives", [d]) and p in entry.get("platforms", [p])
        else 1
        for m, d, p in product(MEASUREMENTS, DRIVES, PLATFORMS)
    }


def test_an_inclusion_adds_missing_combinations() -> None:
    narrow = (choice("m", ("a",)), choice("n"))
    assert ("m", "b", NO_PLATFORM) not in resolve(choices=narrow)
    runs = resolve(include=[{"measurements": ["m"], "drives": ["b"]}], choices=narrow)
    assert runs[("m", "b", NO_PLATFORM)] == 1
    assert ("m", "c", NO_PLATFORM) not in runs


def test_an_inclusion_without_drives_uses_the_planned_drives() -> None:
    narrow = (choice("m", ("a",)), choice("n"))
    runs = resolve(include=[{"measurements": ["m"], "runs": 5}], choices=narrow)
    assert {drive for name, drive, _ in runs if name == "m"} == {"a"}
    assert runs[("m", "a", NO_PLATFORM)] == 5


def test_an_excluded_drive_can_be_included_on_one_platform() -> None:
    runs = resolve(
        [{"drives": ["a"], "measurements": ["m"]}],
        [{"drives": ["a"], "measurements": ["m"], "platforms": ["q"], "runs": 3}],
        platforms=PLATFORMS,
    )
    assert {key: runs for key, runs in runs.items() if key[:2] == ("m", "a")} == {("m", "a", "q"): 3}


STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
measurements: [{protocol: pts-write-saturation, scale: demo}, {protocol: pts-throughput, scale: demo}]
"""


def plans(more: str) -> list[tuple[str, str, int]]:
    Path("config/mine.yaml").write_text(STUDY + more)
    return [
        (planned.plan.drive, planned.plan.measurement, planned.plan.run)
        for planned in Campaign.load("config/mine.yaml").plans
    ]


def test_plans_follow(project: Path) -> None:
    whole = plans("")
    without = plans("exclude: [{drives: [op28], measurements: [pts-throughput]}]\n")
    assert without == [
        planned for planned in whole if not (planned[0] == "op28" and planned[1].startswith("pts-throughput"))
    ]
    more = plans("include: [{drives: [op7], measurements: [pts-write-saturation], runs: 3}]\n")
    assert set(more) - set(whole) == {("op7", "pts-write-saturation", 2), ("op7", "pts-write-saturation", 3)}


def test_other_plans_stay_the_same(project: Path) -> None:
    Path("config/mine.yaml").write_text(STUDY)
    before = {planned.plan.recording: planned.plan.to_json() for planned in Campaign.load("config/mine.yaml").plans}
    Path("config/mine.yaml").write_text(
        STUDY + "exclude: [{drives: [op28]}]\norder: {random: 3}\nconcurrency: {bench: 2}\nbudget: {written: 1PB}\n"
    )
    after = {planned.plan.recording: planned.plan.to_json() for planned in Campaign.load("config/mine.yaml").plans}
    assert 0 < len(after) < len(before)
    assert after.items() <= before.items()


def test_concurrency_by_host(project: Path) -> None:
    plans("concurrency: {bench-a: 2}\n")
    study = load_study(Path("config/mine.yaml"))
    assert (study.concurrency_of("bench-a"), study.concurrency_of("other"), study.concurrency_of("any")) == (2, 1, 1)
    plans("concurrency: 3\n")
    assert load_study(Path("config/mine.yaml")).concurrency_of("other") == 3


GROWING = """\
name: mine
clock: virtual
drives: [op7, op28]
runs: {runs}
measurements:
  - {{protocol: pts-iops, scale: demo}}
  - {{protocol: pts-write-saturation, scale: demo, name: soak}}
"""
GROWS = "{least: 3, most: 5, until: decided}"


def growing(runs: str = GROWS, more: str = "") -> Study:
    Path("config/mine.yaml").write_text(GROWING.format(runs=runs) + more)
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
    assert (growing().runs, len(planned())) == (3, 12)
    looked(**{"pts-iops": 4, "soak": 3})
    assert growing().runs == 4
    assert {name for name in planned() if name.endswith("run4")} == {
        name for name in planned() if "/pts-iops/" in name and name.endswith("run4")
    }
    assert len(planned()) == 14
    looked(**{"pts-iops": 5, "soak": 3})
    of_looks = planned()
    growing("5")
    assert of_looks.items() <= planned().items()  # names and digests are those of a fixed number of runs


def test_each_look_has_its_own_confidence(project: Path) -> None:
    assert growing().verdict_confidence_pct == pytest.approx(100 - 100 * look_level(0.05, 3, 5, 3))
    looked(**{"pts-iops": 4, "soak": 3})
    grown = growing(more="analysis: {confidence: 90%}\n")
    assert grown.verdict_confidence_pct == pytest.approx(100 - 100 * look_level(0.1, 3, 5, 4))
    assert growing("3").verdict_confidence_pct == 95


def test_another_plan_after_a_look_is_refused(project: Path) -> None:
    looked(**{"pts-iops": 4})
    with pytest.raises(UserError, match=r"3 to 6, but the looks so far counted on 3 to 5.*Restore the key"):
        growing("{least: 3, most: 6, until: decided}")


def test_what_changes_after_a_look_costs_the_confidence(project: Path) -> None:
    def level(runs: str, analysis: str = "", more: str = "") -> str:
        history = history_of(study := growing(runs, f"{more}analysis: {{{analysis}}}\n"))
        write_json(study.results / JUDGED, {"looks": history})
        return broken_level(history)

    assert level("1") == level("3") == level("3") == "", "a single run has no verdict"
    lost = "; the confidence of 95 % no longer holds"
    assert level("5").startswith(f"runs changed after a look: 3, then 5{lost} (a growing study, `runs: {{least: 3, ")
    assert level("6").startswith(f"runs changed after a look: 3, then 5, then 6{lost}")
    assert level("3") == "", "the plan of the first look is as it was"
    assert level("3", "margin: 10%") == f"margin changed after a look: 5 %, then 10 %{lost}"
    assert "confidence changed after a look: 95 %, then 90 %" in level("3", "confidence: 90%")
    assert "basis changed after a look: op7, then op28" in level("3", more="basis: op28\n")
    (project / "results/mine" / JUDGED).unlink()
    assert level(GROWS) == ""
    looked(**{"pts-iops": 4, "soak": 3})
    assert level(GROWS) == "", "a run that the study's own rule adds"
    assert level("5").startswith(f"runs changed after a look: 3 to 5, then 5{lost}")


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
        growing()


def test_looks_are_written_as_they_are_read(project: Path) -> None:
    growth = Growth(3, 5).grown({"pts-iops": 4}, ("because",)).grown({"pts-iops": 5}, ("why", "again"))
    looks(json.dumps(growth.to_mapping()))
    assert growing().growth == growth
    assert growth.facts(95)["reasons"] == ["because", "why", "again"]


def test_an_archive_keeps_the_looks() -> None:
    assert is_kept("results/mine/looks.json")
    assert is_kept("results/mine/judged.json")
