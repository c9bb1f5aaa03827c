"""Missing I/O engines are refused before any write."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.replay import native
from drivelab.workflow import check

REPLAY = {"engine": "native", "prefill": "none"}


def plan(clock: str, *steps: dict[str, Any]) -> Plan:
    return Plan({"clock": clock, "measure": list(steps)}, {"measurement": "m"})


@pytest.fixture(autouse=True)
def _host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "possible", lambda: "io_uring is not permitted here")
    monkeypatch.setattr(check, "fio_version", lambda: "3.33")


@pytest.mark.parametrize("step", [{"replay": REPLAY}])
def test_steps_that_need_the_native_engine_are_refused_without_it(step: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="m needs drivelab's native replay engine, but io_uring is not permitted"):
        check.check_engines([plan("wall", {"idle": {}}, step)])


@pytest.mark.parametrize(
    "accepted",
    [
        plan("virtual", {"replay": REPLAY}),
        plan("wall", {"loop": {"cells": []}}, {"loop": {"streams": {"kind": "individual"}}}),
    ],
)
def test_other_steps_are_accepted_without_the_native_engine(accepted: Plan) -> None:
    check.check_engines([accepted])


def test_fio_is_required_only_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise UserError("fio is not installed")

    monkeypatch.setattr(check, "fio_version", missing)
    check.check_engines([plan("virtual", {"soak": {}})])
    with pytest.raises(UserError, match="fio is not installed"):
        check.check_engines([plan("wall", {"soak": {}})])
