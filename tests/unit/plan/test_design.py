"""`exclude` and `include`: the remaining combinations, the refusals, and unchanged other plans."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.design import NO_PLATFORM, Design
from drivelab.plan.study import load_study
from drivelab.plan.study_parts import MeasurementChoice

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


@pytest.mark.parametrize(
    ("exclude", "include", "sentence"),
    [
        ([{"drives": ["x"]}], [], r"'exclude\[0\]\.drives' names 'x', which is not among.*choose one of a, b, c"),
        ([{"platforms": ["p"]}], [], r"'exclude\[0\]\.platforms' names 'p'.*there are none"),
        ([], [{"measurements": ["x"]}], r"'include\[0\]\.measurements' names 'x'"),
        (
            [{"drives": ["a"]}, {"drives": ["a"], "measurements": ["m"]}],
            [],
            r"'exclude\[1\]' matches no planned measurement",
        ),
        ([], [{"drives": ["a"]}], r"'include\[0\]' adds nothing.*already has 1 run;"),
        ([{"drives": ["c"]}], [{"drives": ["c"]}], r"'include\[0\]' adds nothing.*none of its names is planned.*both"),
        ([], [{"drives": ["a"], "runs": 3}, {"drives": ["a"]}], r"'include\[1\]' adds nothing.*already has 3 runs;"),
        ([{"drives": ["a", "b", "c"]}], [], "removes every"),
    ],
)
def test_ineffective_or_invalid_entries_are_refused(
    exclude: list[dict[str, list[str]]], include: list[dict[str, object]], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        resolve(exclude, include)


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


def test_the_basis_must_not_be_excluded(project: Path) -> None:
    with pytest.raises(UserError, match="basis' is 'op7', on which nothing is measured"):
        plans("exclude: [{drives: [op7]}]\n")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("budget: {time: soon}", r"'budget\.time': 'soon' is not a duration"),
        ("budget: {written: 20T}", r"'budget\.written': '20T' is not a volume of data"),
        ("budget: {endurance: 5}", "budget"),
        ("budget: {time: 0d}", r"'budget\.time': the duration '0d' is zero"),
        ("budget: {written: 0TB}", r"'budget\.written' is 0TB, so nothing can run; set a positive limit"),
        ("budget: {endurance: 0%}", r"'budget\.endurance' is 0%"),
        ("order: {random: -1}", "order"),
        ("exclude: [{}]", "exclude"),
        ("include: [{run: 3}]", "include"),
    ],
)
def test_a_wrong_key_is_refused(project: Path, line: str, sentence: str) -> None:
    with pytest.raises(UserError, match=rf"config/mine\.yaml.*{sentence}"):
        plans(line + "\n")


def test_concurrency_by_host(project: Path) -> None:
    plans("concurrency: {bench-a: 2}\n")
    study = load_study(Path("config/mine.yaml"))
    assert (study.concurrency_of("bench-a"), study.concurrency_of("other"), study.concurrency_of("any")) == (2, 1, 1)
    plans("concurrency: 3\n")
    assert load_study(Path("config/mine.yaml")).concurrency_of("other") == 3
