"""Format NVM keeps the format, spares other namespaces, and is verified instead of trusted."""

from __future__ import annotations

import pytest
from fake_drives import FakeNvme, reasons
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.drives.purge import SpoiltError, purge
from drivelab.drives.purge.nvme_format import Layout


@pytest.mark.parametrize(("method", "setting"), [("nvme-format-user-data", 1), ("nvme-format-crypto", 2)])
@pytest.mark.parametrize(
    ("namespace", "kept"),
    [
        ({"flbas": 0, "dps": 0}, ["--lbaf=0", "--ms=0", "--pi=0", "--pil=0"]),
        ({"flbas": 0x13, "dps": 0x9}, ["--lbaf=3", "--ms=1", "--pi=1", "--pil=1"]),
        ({"flbas": 0x21, "dps": 0x2}, ["--lbaf=17", "--ms=0", "--pi=2", "--pil=0"]),
    ],
)
def test_format_erases_and_keeps_the_format(
    nvme: FakeNvme, method: str, setting: int, namespace: dict[str, int], kept: list[str]
) -> None:
    nvme.namespace |= namespace
    result = purge(nvme.approved, method)
    assert (result["method"], result["leaves"]) == (method, "unwritten")
    (call,) = nvme.called("nvme", "format")
    assert {f"--ses={setting}", *kept, "--force"} <= set(call)
    assert "--ses=0" not in call


@settings(deadline=None)
@given(flbas=st.integers(0, 0x7F), dps=st.integers(0, 0xF))
def test_layout_reads_all_bits_and_only_them(flbas: int, dps: int) -> None:
    layout = Layout.from_answer({"flbas": flbas, "dps": dps, "nsze": 8})
    assert (layout.lba_format & 0xF) | layout.extended_metadata << 4 | (layout.lba_format >> 4) << 5 == flbas
    assert layout.protection | layout.protection_first << 3 == dps


def test_format_is_refused_if_the_current_format_is_unknown(nvme: FakeNvme) -> None:
    del nvme.namespace["dps"]
    with pytest.raises(UserError, match="could not keep the format"):
        purge(nvme.approved, "nvme-format-user-data")
    assert not nvme.called("nvme", "format")


def test_format_that_changes_the_format_stops_auto(nvme: FakeNvme) -> None:
    def erase_and_change() -> None:
        nvme.erase()
        nvme.namespace["flbas"] = 1

    nvme.controller["sanicap"] = 0
    nvme.erases = erase_and_change
    with pytest.raises(SpoiltError, match="nvme format changed the format of"):
        purge(nvme.approved)
    assert not nvme.called("blkdiscard")


def test_format_that_only_reports_success_is_detected(nvme: FakeNvme) -> None:
    nvme.erases = lambda: None
    with pytest.raises(UserError, match=r"not purged by nvme-format-user-data .*canaries still read back"):
        purge(nvme.approved, "nvme-format-user-data")


def test_format_that_leaves_blocks_mapped_is_detected(nvme: FakeNvme) -> None:
    """A crypto erase that only changes the key destroys the data, but the drive is still full."""
    nvme.erases = nvme.scramble
    with pytest.raises(UserError, match="should read as 0x00"):
        purge(nvme.approved, "nvme-format-crypto")
    nvme.namespace["dlfeat"] = 0  # declares nothing, so any content is allowed
    assert "read the same twice" in purge(nvme.approved, "nvme-format-crypto")["content"]


@pytest.mark.parametrize(("dlfeat", "byte"), [(1, 0x00), (2, 0xFF), (0x9, 0x00)])
def test_deallocated_blocks_read_as_declared(nvme: FakeNvme, dlfeat: int, byte: int) -> None:
    nvme.namespace["dlfeat"] = dlfeat
    nvme.erases = lambda: nvme.erase(byte)
    assert purge(nvme.approved, "nvme-format-user-data")["method"] == "nvme-format-user-data"
    nvme.erases = lambda: nvme.erase(0x55)
    with pytest.raises(UserError, match=f"should read as {byte:#04x}"):
        purge(nvme.approved, "nvme-format-user-data")


def test_crypto_format_requires_controller_support(nvme: FakeNvme) -> None:
    nvme.controller["fna"] = 0
    with pytest.raises(UserError, match=r"cannot be purged by nvme-format-crypto: .*FNA bit 2"):
        purge(nvme.approved, "nvme-format-crypto")
    nvme.controller["oacs"] = 0
    with pytest.raises(UserError, match="does not support Format NVM"):
        purge(nvme.approved, "nvme-format-user-data")


@pytest.mark.parametrize("fna", [0x5, 0x6, 0x7])
def test_format_that_reaches_other_namespaces_is_refused(nvme: FakeNvme, fna: int) -> None:
    nvme.controller["fna"] = fna
    nvme.namespaces = ["nvme0n1", "nvme0n2"]
    for method in ("nvme-format-user-data", "nvme-format-crypto", "nvme-sanitize-block", "nvme-sanitize-overwrite"):
        with pytest.raises(UserError, match="it would also destroy nvme0n2"):
            purge(nvme.approved, method)
    result = purge(nvme.approved)
    assert result["method"] == "trim"
    assert not nvme.called("nvme", "format")
    assert not nvme.called("nvme", "sanitize")


def test_format_that_affects_only_one_namespace_is_allowed(nvme: FakeNvme) -> None:
    nvme.namespaces = ["nvme0n1", "nvme0n2"]
    result = purge(nvme.approved)
    assert result["method"] == "nvme-format-user-data"
    assert "nvme0n2" in reasons(result)["nvme-sanitize-block"]


@pytest.mark.parametrize(
    ("allocated", "reason"), [([1, 7], "2 are allocated"), (None, "there may be others"), ([1], None)]
)
def test_unattached_namespaces_count(nvme: FakeNvme, allocated: list[int] | None, reason: str | None) -> None:
    nvme.controller["oacs"] |= 0x8
    nvme.allocated = allocated
    if reason is None:
        assert purge(nvme.approved)["method"] == "nvme-sanitize-block"
    else:
        with pytest.raises(UserError, match=reason):
            purge(nvme.approved, "nvme-sanitize-block")


def test_sanitize_is_refused_if_the_kernel_shows_no_namespaces(nvme: FakeNvme) -> None:
    nvme.namespaces = []
    with pytest.raises(UserError, match="does not say which other namespaces"):
        purge(nvme.approved, "nvme-sanitize-crypto")
