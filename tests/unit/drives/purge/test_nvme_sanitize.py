"""Sanitize is tracked by its log until it ends, with success or failure."""

from __future__ import annotations

import pytest
from fake_drives import FakeNvme, reasons
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.drives.purge import method, purge
from drivelab.drives.purge.nvme_sanitize import progress, status

FAILED = {"sprog": 65535, "status": "(3) Most Recent Sanitize Command Failed."}
RUNNING = {"sprog": 16384, "status": "(2) Sanitize in Progress."}
DONE = {"sprog": 65535, "status": "(1) Most Recent Sanitize Command Completed Successfully."}


@pytest.mark.parametrize(("kind", "action"), [("block", 2), ("overwrite", 3), ("crypto", 4)])
def test_sanitize_is_tracked_until_it_ends(nvme: FakeNvme, kind: str, action: int) -> None:
    nvme.after_sanitize = [RUNNING, RUNNING | {"sprog": 49152}, DONE]
    fractions: list[float | None] = []
    result = purge(nvme.approved, f"nvme-sanitize-{kind}", lambda text, fraction: fractions.append(fraction))
    assert [fraction for fraction in fractions if fraction is not None] == [0.25, 0.75, 1.0]
    assert result["evidence"]["sanitize_log"]["sstat"]["status"].startswith("(1)")
    (call,) = nvme.called("nvme", "sanitize")
    assert call[2] == "/dev/nvme0"
    assert f"--sanact={action}" in call
    assert ("--ovrpat=0x0" in call) == (kind == "overwrite")


def test_overwrite_pattern_equals_content_of_deallocated_blocks(nvme: FakeNvme) -> None:
    nvme.namespace["dlfeat"] = 2
    nvme.erases = lambda: nvme.erase(0xFF)
    purge(nvme.approved, "nvme-sanitize-overwrite")
    assert any("--ovrpat=0xffffffff" in call for call in nvme.called("nvme", "sanitize"))


def test_auto_leaves_failure_mode_and_tries_the_next_method(nvme: FakeNvme) -> None:
    nvme.after_sanitize = [RUNNING, FAILED]
    result = purge(nvme.approved)
    assert result["method"] == "nvme-format-user-data"
    assert "SSTAT 3" in reasons(result)["nvme-sanitize-block"]
    assert "has left failure mode" in reasons(result)["nvme-sanitize-block"]
    assert nvme.called("nvme", "sanitize", "--sanact=1")


def test_sanitize_that_never_started_is_detected_by_its_log(nvme: FakeNvme) -> None:
    """The exit status is 0, but the log shows an older operation of another kind."""
    nvme.after_sanitize = []
    with pytest.raises(UserError, match="shows no completed operation"):
        purge(nvme.approved, "nvme-sanitize-block")


def test_sanitize_without_progress_times_out(nvme: FakeNvme) -> None:
    nvme.after_sanitize = [RUNNING]
    with pytest.raises(UserError, match="no progress for 12 h"):
        purge(nvme.approved, "nvme-sanitize-block")
    assert nvme.clock_s > method.PATIENCE_S


def test_purge_waits_for_the_sanitize_of_an_interrupted_purge(nvme: FakeNvme) -> None:
    nvme.steps = [{"sprog": 9, "sstat": {"status": f"({n})"}} for n in (2, 2, 1)]
    texts: list[str] = []
    assert purge(nvme.approved, "trim", lambda text, fraction: texts.append(text))["method"] == "trim"
    assert any("started earlier" in text for text in texts)


def test_sanitize_requires_controller_support(nvme: FakeNvme) -> None:
    nvme.controller["sanicap"] = 0x1
    result = purge(nvme.approved, "nvme-sanitize-crypto")
    assert result["method"] == "nvme-sanitize-crypto"
    with pytest.raises(UserError, match="SANICAP"):
        purge(nvme.approved, "nvme-sanitize-block")


@pytest.mark.parametrize("value", [0x102, {"status": "(2) Sanitize in Progress."}, {"status": 2}, "0x102"])
def test_status_is_read_in_all_forms(value: object) -> None:
    assert status({"sstat": value}) == 2


def test_missing_status_is_an_error() -> None:
    with pytest.raises(UserError, match="contains no status"):
        status({"sprog": 3})


@settings(deadline=None)
@given(st.integers(0, 0xFFFE))
def test_progress_is_a_share(value: int) -> None:
    assert progress({"sprog": value}) == value / 65536
    assert progress({"sprog": 0xFFFF}) is None
