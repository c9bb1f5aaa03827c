"""The order of measurements: as listed, or in randomised complete blocks."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drivelab.plan.hosts import positions
from drivelab.plan.plan import Plan


def plan(drive: str, measurement: str, run: int, host: str = "any", **subject: Any) -> Plan:
    serial = {"serial": drive.upper()}
    context = {"drive": drive, "measurement": measurement, "run": run, "results": "r"}
    return Plan(
        {"drive": serial, "protocol": measurement, **subject}, context | ({} if host == "any" else {"host": host})
    )


def study(drives: int, measurements: int, runs: int, hosts: int) -> list[Plan]:
    return [
        plan(f"d{d}", f"m{m}", run, f"h{d % hosts}")
        for m, d, run in product(range(measurements), range(drives), range(1, runs + 1))
    ]


sizes = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))


def by_host(plans: list[Plan], seed: int | None) -> dict[str, list[Plan]]:
    place = positions(plans, seed)
    hosts: dict[str, list[Plan]] = {}
    for planned in sorted(plans, key=lambda plan: place[plan.recording]):
        hosts.setdefault(str(planned.context.get("host", "any")), []).append(planned)
    return hosts


@given(sizes, st.integers(0, 10**9))
def test_positions_on_each_host_are_a_permutation_and_blocks_are_complete(
    size: tuple[int, int, int, int], seed: int
) -> None:
    plans = study(*size)
    place = positions(plans, seed)
    for of_host in by_host(plans, seed).values():
        assert [place[plan.recording] for plan in of_host] == list(range(len(of_host)))
        block = len(of_host) // size[2]
        for run in range(size[2]):
            chosen = of_host[run * block : (run + 1) * block]
            assert {plan.run for plan in chosen} == {run + 1}
            assert len({(plan.drive, plan.measurement) for plan in chosen}) == block


@given(sizes, st.integers(0, 10**9), st.randoms())
def test_the_same_seed_gives_the_same_order(size: tuple[int, int, int, int], seed: int, random: Any) -> None:
    plans = study(*size)
    mixed = list(plans)
    random.shuffle(mixed)
    assert positions(plans, seed) == positions(mixed, seed)


@given(sizes, st.integers(0, 10**9))
def test_a_new_drive_keeps_the_order_of_the_others(size: tuple[int, int, int, int], seed: int) -> None:
    plans = study(*size[:3], 1)
    before = [planned.recording for planned in by_host(plans, seed)["h0"]]
    after = by_host([*plans, *(plan("new", f"m{m}", 1, "h0") for m in range(size[1]))], seed)["h0"]
    assert [plan.recording for plan in after if plan.drive != "new"] == before


def test_without_a_seed_the_listed_order_is_kept() -> None:
    plans = study(3, 2, 3, 1)
    assert list(positions(plans, None).values()) == list(range(len(plans)))


def test_every_drive_comes_first_equally_often() -> None:
    """Over 4,000 seeds each of four drives is first about 1,000 times; the standard deviation is 27."""
    plans = study(4, 1, 1, 1)
    first = Counter(by_host(plans, seed)["h0"][0].drive for seed in range(4000))
    assert all(abs(count - 1000) < 5 * 27 for count in first.values()), first


def test_each_block_is_shuffled_separately() -> None:
    of_host = by_host(study(6, 1, 2, 1), 7)["h0"]
    assert [plan.drive for plan in of_host[:6]] != [plan.drive for plan in of_host[6:]]


def test_drives_measured_at_the_same_time_stay_together() -> None:
    both = {"simultaneous": ["D0", "D1"]}
    plans = [plan(f"d{d}", "together", 1, **both) for d in range(2)] + [plan(f"d{d}", "m", 1) for d in range(8)]
    for seed in range(30):
        place = positions(plans, seed)
        first, second = (place[plan.recording] for plan in plans[:2])
        assert abs(first - second) == 1
