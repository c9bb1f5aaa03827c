from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.drives import described, sysfs
from drivelab.drives.identified import Identity
from drivelab.drives.seal import Seal, judge
from drivelab.drives.sysfs import Wear

WEAR = Wear(boot_id="b", diskseq="7", sectors_written=1000, sectors_discarded=10)
NVME = replace(WEAR, lifetime_bytes_written=5_120_000)
DRIVE = Identity("S1", 10**12, "Fast 1", "eui.1")
SEAL = Seal("precondition", DRIVE, "abc", WEAR, "2026-01-01T00:00:00.000+00:00")


def test_a_seal_is_intact_without_writes() -> None:
    verdict = judge(SEAL, "precondition", DRIVE, "abc", WEAR)
    assert verdict.intact
    assert verdict.reason == "the kernel's counters show no write or discard since the seal"
    assert Seal.from_mapping(SEAL.to_mapping()) == SEAL
    assert Seal.from_mapping(replace(SEAL, wear=NVME).to_mapping()).wear == NVME


@given(
    written=st.integers(-10, 10),
    discarded=st.integers(-10, 10),
    lifetime=st.sampled_from([None, 0, 512_000]),
    fresh=st.booleans(),
)
def test_any_counted_write_breaks_the_seal(written: int, discarded: int, lifetime: int | None, fresh: bool) -> None:
    live = replace(
        NVME,
        diskseq="8" if fresh else "7",
        sectors_written=WEAR.sectors_written + written,
        sectors_discarded=WEAR.sectors_discarded + discarded,
        lifetime_bytes_written=None if lifetime is None else 5_120_000 + lifetime,
    )
    intact = judge(replace(SEAL, wear=NVME), "precondition", DRIVE, "abc", live).intact
    assert intact == (lifetime == 0 if fresh else (written == 0 and discarded == 0))


def test_disabled_kernel_counters_are_refused(tmp_path: Path) -> None:
    """With queue/iostats at 0 the kernel counts no I/O."""
    directory = tmp_path / "class/block/sdz"
    (directory / "queue").mkdir(parents=True)
    (directory / "stat").write_text(" ".join(["7"] * 17))
    (directory / "queue/iostats").write_text("1\n")
    assert sysfs.wear("sdz", tmp_path).sectors_written == 7
    (directory / "queue/iostats").write_text("0\n")
    with pytest.raises(UserError, match=r"does not count.*echo 1 > /sys/class/block/sdz/queue/iostats"):
        sysfs.wear("sdz", tmp_path)
    assert sysfs.writes("sdz", tmp_path) is None


def test_a_seal_of_an_array_is_written_and_read() -> None:
    of_array = Identity("S", 10**12, disks=(Identity("A", 10**12, "Fast"), Identity("B", 10**12)))
    wear = replace(WEAR, members={"A": {"sectors_written": 5, "sectors_discarded": 0}}, own_records_bytes=512)
    seal = Seal("purge", of_array, "P", wear, "2026-11-25T00:00:00Z")
    assert Seal.from_mapping(json.loads(json.dumps(seal.to_mapping()))) == seal


def test_a_disk_and_its_partitions_are_read_without_a_write_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool writes its records to its partition during the first reading."""
    total, writes = {"sdz": 100, "sdz1": 60}, iter([8])

    def wear(name: str) -> Wear:
        read = Wear("boot", "1", total[name], 0)
        if name == "sdz":
            written = next(writes, 0)
            total.update({other: count + written for other, count in total.items()})
        return read

    monkeypatch.setattr(described.sysfs, "wear", wear)
    whole, (part,) = described._at_once("sdz", ["sdz1"])
    assert (whole.sectors_written, part.sectors_written) == (108, 68)
    assert described._at_once("sdz", []) == (whole, [])
