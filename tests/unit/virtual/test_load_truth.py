"""Loads on a virtual clock against the formulas of queues with random arrivals and constant service times.

The drive has c servers that each take a time D: the queue M/D/c. Its waiting times are known exactly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from decimal import Decimal, getcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from drivelab.criteria.rate_search import FAILS, PASSES, Search, answer, next_rate
from drivelab.plan.cell import Cell
from drivelab.replay.arrivals import constant_gaps, load_schedule, poisson_gaps
from drivelab.replay.evaluation.load_rate import rate_facts, read_requests, write_requests
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel
from drivelab.virtual_clock.replaying import replay_schedule

MakeModel = Callable[..., DriveModel]
SERVICE_US = 100.0
CELL = Cell("random", 100, PAGE_BYTES, threads=1, queue_depth=4096)


class Servers(FlashDrive):
    """A drive with `count` servers that serve requests in order, each in SERVICE_US."""

    def __init__(self, model: DriveModel, count: int) -> None:
        super().__init__(model)
        self._free_us = [0.0] * count

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        done_us = max(now_us, heapq.heappop(self._free_us)) + SERVICE_US
        heapq.heappush(self._free_us, done_us)
        return done_us


def wait_within_one_server(load: float, times: float) -> float:
    """Return the probability that a request waits at most `times` service times in M/D/1.

    Erlang 1909, Crommelin 1932: (1 - r) sum over k <= t of exp(r (t - k)) (r (k - t))^k / k!. The terms alternate, so
    the sum needs many digits.
    """
    getcontext().prec = 80
    rate, time = Decimal(load), Decimal(times)
    terms = (
        (rate * (time - k)).exp() * (rate * (k - time)) ** k / math.factorial(k) if k else (rate * time).exp()
        for k in range(math.floor(times) + 1)
    )
    return float((1 - rate) * sum(terms, Decimal(0)))


def wait_within_servers(load: float, servers: int, times: float) -> float:
    """Return the same probability for M/D/c, by Franx 2001 ("A simple solution for the M/D/c waiting time").

    With Q the distribution function of the number that waits, and kD - D <= t < kD,
    P(W <= t) = exp(-u) sum over j < kc of Q(kc - 1 - j) u^j / j!, where u = rate (kD - t).
    """
    waiting = at_most_waiting(load, servers)
    k = math.floor(times) + 1
    u = load * servers * (k - times)
    return math.exp(-u) * math.fsum(waiting[k * servers - 1 - j] * u**j / math.factorial(j) for j in range(k * servers))


@cache
def at_most_waiting(load: float, servers: int, states: int = 400) -> list[float]:
    """Return the probabilities that at most 0, 1, … requests wait.

    The number of requests in the system is a Markov chain at steps of a service time: all in service leave, and a
    Poisson number arrives.
    """
    mean = load * servers
    arrive = np.exp(np.arange(states) * math.log(mean) - mean - [math.lgamma(j + 1) for j in range(states)])
    step = np.zeros((states, states))
    for present in range(states):
        stay = max(present - servers, 0)
        step[present, stay:] = arrive[: states - stay]
    balance = np.vstack([step.T - np.eye(states), np.ones(states)])
    return np.cumsum(np.linalg.lstsq(balance, np.r_[np.zeros(states), 1.0], rcond=None)[0])[servers:].tolist()


def percentile_us(within: Callable[[float], float], percentile: float) -> float:
    """Return the percentile of the response time, by bisection of the waiting time."""
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if within(middle) >= percentile / 100 else (middle, high)
    return SERVICE_US * (1 + high)


def measured(drive: FlashDrive, iops: float, count: int, folder: Path, seed: int = 1, **limits: float) -> Path:
    """Replay random arrivals at a rate and return the folder of the evidence."""
    folder.mkdir()
    schedule, results = folder / "load.schedule", folder / "results.bin"
    load_schedule(CELL, poisson_gaps(seed), iops, count, schedule, seed, drive.model.capacity_bytes, PAGE_BYTES)
    replay_schedule(drive, schedule, results, 0.0, **limits)  # type: ignore[arg-type]
    write_requests(schedule, results, folder / "requests.parquet")
    return folder


def test_the_two_formulas_agree() -> None:
    for times in (0.0, 0.5, 1.0, 3.7, 8.2):
        assert wait_within_servers(0.8, 1, times) == pytest.approx(wait_within_one_server(0.8, times), abs=1e-9)
    assert wait_within_one_server(0.8, 0) == pytest.approx(0.2)  # as many requests find the server free


@pytest.mark.parametrize(
    ("servers", "load", "count", "percentile"),
    [
        (1, 0.5, 60_000, 99),
        (4, 0.7, 60_000, 99),
        pytest.param(1, 0.8, 400_000, 99, marks=pytest.mark.long),
        pytest.param(4, 0.9, 400_000, 95, marks=pytest.mark.long),
        pytest.param(2, 0.5, 400_000, 99.9, marks=pytest.mark.long),
    ],
)
def test_response_times_are_those_of_the_formula(
    small: MakeModel, tmp_path: Path, servers: int, load: float, count: int, percentile: float
) -> None:
    """The interval covers the truth, and is narrow enough to mean something."""
    iops = load * servers * 1e6 / SERVICE_US
    folder = measured(Servers(small(), servers), iops, count, tmp_path / "rate")
    facts = rate_facts([read_requests(folder)], percentile, 1e9)
    truth_us = percentile_us(lambda times: wait_within_servers(load, servers, times), percentile)
    assert facts["low_us"] <= truth_us <= facts["high_us"]
    assert facts["response_us"] == pytest.approx(truth_us, rel=0.1)
    assert facts["high_us"] < 1.3 * facts["low_us"]
    assert facts["achieved_iops"] == pytest.approx(iops, rel=0.02)
    assert facts["late_issue_us"] == 0
    assert facts["doubts"] == []


def test_constant_arrivals_below_capacity_do_not_wait(small: MakeModel, tmp_path: Path) -> None:
    drive, schedule, results = Servers(small(), 1), tmp_path / "s", tmp_path / "r"
    load_schedule(CELL, constant_gaps(), 9_900, 10_000, schedule, 1, drive.model.capacity_bytes, PAGE_BYTES)
    replay_schedule(drive, schedule, results, 0.0)
    write_requests(schedule, results, tmp_path / "requests.parquet")
    facts = rate_facts([read_requests(tmp_path)], 99, 150.0)
    assert (facts["outcome"], facts["max_response_us"]) == (PASSES, SERVICE_US)


def test_the_search_finds_the_rate_of_the_formula(small: MakeModel, tmp_path: Path) -> None:
    """The rate at which p99 of M/D/1 is 500 us follows from the formula; the search finds it within 5 %."""
    limit_us = 5 * SERVICE_US
    low, high = 0.1, 0.99
    for _ in range(40):
        load = (low + high) / 2
        keeps = wait_within_one_server(load, limit_us / SERVICE_US - 1) >= 0.99
        low, high = (load, high) if keeps else (low, load)
    truth_iops = low * 1e6 / SERVICE_US
    search = Search(start_iops=1000, factor=1.5, resolution=0.05, most_iops=1e5)
    rates: list[tuple[float, str]] = []
    while (iops := next_rate(search, rates)) is not None:
        folder = measured(Servers(small(), 1), iops, 25_000, tmp_path / f"{iops}", seed=len(rates), runtime_s=300.0)
        rates.append((iops, rate_facts([read_requests(folder)], 99, limit_us)["outcome"]))
    found = answer(rates)
    assert found.passing_iops is not None
    assert found.failing_iops is not None
    assert found.passing_iops < truth_iops < found.failing_iops
    assert found.failing_iops < 1.2 * found.passing_iops


def test_an_overload_fails_although_the_engine_waits_for_places(small: MakeModel, tmp_path: Path) -> None:
    """Only four requests are in flight, so the drive answers each quickly; the response time counts from when due."""
    folder = measured(Servers(small(), 1), 20_000, 40_000, tmp_path / "rate", depth_limit=4, runtime_s=3.0)
    requests = read_requests(folder)
    facts = rate_facts([requests], 99, 1000.0)
    served = np.isfinite(requests.complete)
    assert float((requests.complete[served] - requests.issue[served]).max()) == pytest.approx(4 * SERVICE_US)
    assert facts["outcome"] == FAILS
    assert facts["requests_unserved"] == pytest.approx(10_000, rel=0.01)
    assert facts["achieved_iops"] == pytest.approx(10_000, rel=0.01)
    assert facts["depth_limited_pct"] > 70
    assert [doubt.partition(":")[0] for doubt in facts["doubts"]] == ["depth limit reached", "unserved"]
