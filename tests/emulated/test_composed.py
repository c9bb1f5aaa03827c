"""Partitions, volumes, arrays, multipath and NVMe over Fabrics on a real kernel: approved, refused, purged, sealed."""

from __future__ import annotations

from typing import Any

import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated

COMPOSITIONS = {
    "partition": "partition at byte 9,437,184 (aligned to 1 MiB) on 1 drive",
    "striped volume": "striped over 2, chunk 64 KiB on partition at byte 9,437,184 (aligned to 1 MiB) on 2 drives",
    "thin volume": "thin volume on thin pool, block 64 KiB on dm linear on partition at byte 9,437,184 (aligned to "
    "1 MiB) on 1 drive",
    "dm-crypt": "dm-crypt aes-xts-plain64 on partition at byte 9,437,184 (aligned to 1 MiB) on 1 drive",
    "RAID 0": "md raid0 of 2, chunk 512 KiB on 2 drives",
    "RAID 1": "md raid1 of 2, bitmap internal on 2 drives",
    "RAID 5": "md raid5 of 3, chunk 512 KiB, layout 2, bitmap none on 3 drives",
    "RAID 10": "md raid10 of 4, chunk 512 KiB, layout 258, bitmap none on 4 drives",
    "multipath": "multipath over 2 paths, round-robin on 2 drives",
    "namespace over fabrics": "",
}
ARRAYS = [name for name in COMPOSITIONS if name.startswith("RAID")]
WITH_SIBLINGS = ["partition", "striped volume", "thin volume", "dm-crypt"]
WITH_MEMBERS = [name for name in COMPOSITIONS if name != "namespace over fabrics"]


@pytest.fixture(scope="module")
def observed(stacked: Machine) -> dict[str, dict[str, Any]]:
    """See guest/composed.py."""
    result: dict[str, dict[str, Any]] = stacked.run("python3 /guest/composed.py", 600).json()
    return result


def of(observed: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    assert "trouble" not in observed[name], observed[name]["trouble"]
    return observed[name]


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_subject_is_approved_by_its_identifier_and_purged_alone(observed: dict[str, dict[str, Any]], name: str) -> None:
    result = of(observed, name)
    assert result["approved"] == "approved"
    assert f"the sheet says X{result['serial'][1:]}" in result["identity"]
    assert result["composition"] == COMPOSITIONS[name]
    assert "canaries are gone" in result["purged"]["verified"]
    assert result["purged"]["method"] in ("trim", "overwrite")
    assert result["untouched"]


@pytest.mark.parametrize("name", WITH_MEMBERS)
def test_wrong_members_are_refused(observed: dict[str, dict[str, Any]], name: str) -> None:
    fewer, more = of(observed, name)["wrong"]
    assert "which 'members' does not name" in fewer
    assert "does not lie on the disk EMU-X" in more


@pytest.mark.parametrize("name", ["partition", "striped volume", "thin volume", "dm-crypt", "multipath"])
def test_listing_says_what_to_enter_in_the_sheet(observed: dict[str, dict[str, Any]], name: str) -> None:
    listed = of(observed, name)["listed"]
    kind = "partition" if name == "partition" else "volume"
    assert (listed["kind"], listed["serial"], listed["reason"]) == (kind, of(observed, name)["serial"], None)
    assert listed["members"] == (["EMU-SCSI"] if name == "multipath" else ["EMU-A", "EMU-B"][: len(listed["members"])])
    assert listed["pin"].startswith("/dev/disk/by-partuuid/" if name == "partition" else "/dev/mapper/")


@pytest.mark.parametrize("name", WITH_MEMBERS)
def test_seal_counts_the_writes_to_members(observed: dict[str, dict[str, Any]], name: str) -> None:
    seals = of(observed, name)["seals"]
    assert "show no write or discard since the seal" in seals[0]
    assert [("beside it since the seal" in reason) for reason in seals[1:]] == [True] * (name in WITH_SIBLINGS)
    if name in WITH_SIBLINGS:
        assert "is mounted on /mnt" in of(observed, name)["sibling"]


@pytest.mark.parametrize("name", ARRAYS)
def test_state_of_the_array(observed: dict[str, dict[str, Any]], name: str) -> None:
    """This machine has no udev rules of mdadm, so an array has no fixed path."""
    result = of(observed, name)
    assert "it has no path that does not change" in result["listed"]["reason"]
    assert result["state"] == "clean"
    if name in ("RAID 5", "RAID 10"):
        assert result["failed"] == ["degraded, 1 missing or not filled", "approved"]
