"""Ordinary drives get no sentence, and each unusual value gets one, with a command that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.cli.main import parser
from drivelab.host.stack import device_class as classes
from drivelab.host.stack.stack import Layer
from drivelab.quick.expectations import MOST_SENTENCES, link_mib_s, sentences
from drivelab.quick.thresholds import KEYS, LIMITS, Limit

EXT4_ON_DISK = (Layer("file system", "ext4", "ext4"), Layer("disk", "sdx", "a disk"))
ARRAY = (Layer("md", "md0", "RAID 0"), Layer("disk", "sda", ""), Layer("disk", "sdb", ""))
PATH = Path("/my data")
ALL = sorted(kind for name, kind in vars(classes).items() if name.isupper() and isinstance(kind, str))


def judged(
    values: dict[str, float], kind: str, layers: tuple[Layer, ...] = EXT4_ON_DISK, **more: str
) -> tuple[str, ...]:
    return sentences(values, kind, layers, PATH, **more)


ORDINARY = {
    "PCIe 4.0 client": (classes.NVME_SSD, {
        "sequential_read_mib_s": 6900, "sequential_write_mib_s": 6100, "random_read_qd32_iops": 620_000,
        "random_write_qd32_iops": 510_000, "read_p50_us": 55, "read_p99_us": 90, "read_p99_9_us": 150,
        "write_p50_us": 14, "write_p99_us": 30, "write_p99_9_us": 900, "commit_p50_us": 1500, "commit_p99_us": 4000,
        "mixed_iops": 300_000, "sustained_start_mib_s": 6000, "sustained_end_mib_s": 2200, "cliff_gib": 110,
        "link_gt_s": 16, "link_lanes": 4, "link_max_gt_s": 16, "link_max_lanes": 4, "busiest_cpu_share": 0.6}),
    "PCIe 3.0 x2 QLC, no DRAM": (classes.NVME_SSD, {
        "sequential_read_mib_s": 1550, "sequential_write_mib_s": 900, "random_read_qd32_iops": 60_000,
        "random_write_qd32_iops": 70_000, "read_p50_us": 140, "read_p99_9_us": 4000, "write_p50_us": 25,
        "write_p99_9_us": 15_000, "commit_p50_us": 5000, "commit_p99_us": 20_000, "link_gt_s": 8, "link_lanes": 2,
        "link_max_gt_s": 8, "link_max_lanes": 2}),
    "data centre with power loss protection": (classes.NVME_SSD, {
        "sequential_read_mib_s": 6600, "random_read_qd32_iops": 500_000, "read_p50_us": 75, "read_p99_9_us": 140,
        "write_p50_us": 11, "write_p99_9_us": 60, "commit_p50_us": 32, "commit_p99_us": 60,
        "sustained_start_mib_s": 3900, "sustained_end_mib_s": 3800}),
    "SATA client": (classes.SATA_SSD, {
        "sequential_read_mib_s": 530, "sequential_write_mib_s": 480, "random_read_qd32_iops": 92_000,
        "random_write_qd32_iops": 80_000, "read_p50_us": 110, "read_p99_9_us": 700, "write_p50_us": 45,
        "write_p99_9_us": 5000, "commit_p50_us": 2200, "link_gt_s": 6, "link_lanes": 1, "link_max_gt_s": 6,
        "link_max_lanes": 1}),
    "SAS": (classes.SAS_SSD, {
        "sequential_read_mib_s": 1050, "sequential_write_mib_s": 900, "random_read_qd32_iops": 180_000,
        "read_p50_us": 120, "write_p50_us": 45, "commit_p50_us": 90}),
    "7,200 rpm": (classes.HARD_DISK, {
        "sequential_read_mib_s": 240, "sequential_write_mib_s": 230, "random_read_qd32_iops": 190,
        "random_write_qd32_iops": 300, "read_p50_us": 9000, "read_p99_9_us": 90_000, "write_p50_us": 60,
        "write_p99_9_us": 120_000, "commit_p50_us": 24_000, "commit_p99_us": 60_000, "mixed_iops": 150,
        "sustained_start_mib_s": 230, "sustained_end_mib_s": 220}),
    "laptop disk": (classes.HARD_DISK, {
        "sequential_read_mib_s": 85, "sequential_write_mib_s": 75, "random_read_qd32_iops": 90, "read_p50_us": 17_000,
        "commit_p50_us": 70_000}),
    "USB 3 stick": (classes.USB, {
        "sequential_read_mib_s": 120, "random_read_qd32_iops": 1400, "read_p50_us": 900, "read_p99_9_us": 9000,
        "write_p50_us": 900, "write_p99_9_us": 1_500_000, "commit_p50_us": 8000}),
    "card": (classes.CARD, {"sequential_read_mib_s": 40, "random_read_qd32_iops": 1800, "read_p50_us": 650}),
}  # fmt: skip
"""Values near those of data sheets and reviews of common drives."""


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_drive_gets_no_sentence(name: str) -> None:
    kind, values = ORDINARY[name]
    assert judged(values, kind) == (f"Nothing unusual for this class of device ({kind}).",)


def cases() -> list[tuple[str, Limit, float]]:
    edges = [(limit, limit.least, 0.99) for limit in LIMITS] + [(limit, limit.most, 1.01) for limit in LIMITS]
    return [(kind, limit, edge * by) for limit, edge, by in edges if edge is not None for kind in limit.classes]


@pytest.mark.parametrize(("kind", "limit", "value"), cases())
def test_each_limit_gives_a_sentence_beyond_it_and_none_at_it(kind: str, limit: Limit, value: float) -> None:
    edge = limit.least if limit.least is not None else limit.most
    assert edge is not None
    assert judged({limit.key: edge}, kind)[0].startswith("Nothing unusual")
    (text,) = judged({limit.key: value}, kind)
    assert text.startswith(KEYS[limit.key].label)
    assert f"usual for this class ({kind})" in text
    assert limit.meaning in text
    assert "{" not in text


def test_each_limit_has_one_side_and_a_source() -> None:
    for limit in LIMITS:
        assert (limit.least is None) != (limit.most is None)
        assert limit.source
        assert limit.key in KEYS


@pytest.mark.parametrize("layers", [ARRAY, (), (Layer("loop", "loop0", ""), *EXT4_ON_DISK)])
def test_absolute_limits_hold_for_one_disk_only(layers: tuple[Layer, ...]) -> None:
    (text,) = judged({"sequential_read_mib_s": 1900}, classes.SATA_SSD, layers)
    assert text.startswith("Nothing stands out.")


@pytest.mark.parametrize("kind", [classes.VIRTUAL_DISK, classes.CLOUD_VOLUME, classes.UNKNOWN, classes.VIRTUAL_DRIVE])
def test_devices_of_unknown_speed_have_no_absolute_limits(kind: str) -> None:
    slow = {"sequential_read_mib_s": 1, "random_read_qd32_iops": 20, "read_p50_us": 400_000, "commit_p50_us": 900_000}
    assert judged(slow, kind)[0].startswith("Nothing stands out.")


RELATIONS = [
    (classes.VIRTUAL_DISK, {"commit_p50_us": 19}, "A commit (append 4 KiB, fsync) takes 19 µs.", "early"),
    (classes.VIRTUAL_DISK, {"commit_p50_us": 100, "write_p50_us": 300}, "A commit takes 100 µs, less than", "findmnt"),
    (classes.NVME_SSD, {"commit_p50_us": 12, "write_p50_us": 40}, "A commit takes 12 µs, less than", "'/my data'"),
    (classes.NVME_SSD, {"sequential_read_mib_s": 4000, "link_gt_s": 8, "link_lanes": 4},
     "Sequential read: 4,000 MiB/s, but the link carries at most 3,760 MiB/s.", "--size"),
    (classes.UNKNOWN, {"sequential_write_mib_s": 700, "link_gt_s": 6, "link_lanes": 1},
     "Sequential write: 700 MiB/s, but the link carries at most 572 MiB/s.", "page cache"),
    (classes.NVME_SSD, {"link_gt_s": 8, "link_lanes": 2, "link_max_gt_s": 16, "link_max_lanes": 4},
     "The link runs at 8 GT/s x2 of 16 GT/s x4", "lspci -vv"),
    (classes.NVME_SSD, {"widest_spread_pct": 80}, "The rounds of one test differ so much that its spread is ±80 %",
     "--time"),
    (classes.NVME_SSD, {"busiest_cpu_share": 0.97}, "RND4K QD32 uses 97 % of a CPU core.", "./drivelab doctor"),
    (classes.NVME_SSD, {"sustained_start_mib_s": 3000, "sustained_end_mib_s": 450, "cliff_gib": 24},
     "The sustained write falls from 3,000 MiB/s to 450 MiB/s after 24 GiB.", "slc-cache"),
    (classes.CLOUD_VOLUME, {"sustained_start_mib_s": 500, "sustained_end_mib_s": 120},
     "The sustained write falls from 500 MiB/s to 120 MiB/s.", "Credits"),
    (classes.HARD_DISK, {"sustained_start_mib_s": 200, "sustained_end_mib_s": 30, "cliff_gib": 9},
     "The sustained write falls", "lsblk"),
    (classes.VIRTUAL_DISK, {"random_read_qd32_iops": 3000, "read_p50_us": 350}, "Random reads at QD32 reach 3,000 IOPS",
     "stec-queue-depths"),
    (classes.VIRTUAL_DISK, {"random_read_qd32_iops": 50_000, "random_write_qd32_iops": 40_000, "mixed_iops": 7000},
     "A mix of 70 % reads and 30 % writes reaches 7,000 IOPS", "iometer-file-server"),
    (classes.VIRTUAL_DISK, {"read_p50_us": 100, "read_p99_9_us": 11_000}, "One read in 1,000 takes more than 11 ms",
     "qos-nines"),
    (classes.VIRTUAL_DISK, {"write_p50_us": 20, "write_p99_us": 21_000}, "One write in 100 takes more than 21 ms",
     "qos-nines"),
    (classes.VIRTUAL_DISK, {"commit_p50_us": 500, "commit_p99_us": 51_000}, "One commit in 100 takes", "qos-nines"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "beginning", "part"), RELATIONS)
def test_each_relation_gives_a_sentence(kind: str, values: dict[str, float], beginning: str, part: str) -> None:
    (text,) = judged(values, kind, busiest_cell="RND4K QD32")
    assert text.startswith(beginning)
    assert part in text


def test_encryption_is_named_where_the_cpu_limits() -> None:
    layers = (Layer("file system", "ext4", ""), Layer("dm-crypt", "luks", ""), Layer("disk", "nvme0n1", ""))
    assert "dm-crypt" in judged({"busiest_cpu_share": 0.95}, classes.NVME_SSD, layers)[0]
    assert "dm-crypt" not in judged({"busiest_cpu_share": 0.95}, classes.NVME_SSD)[0]


@pytest.mark.parametrize("kind", [classes.MEMORY, classes.RAM_DISK])
def test_memory_is_no_drive(kind: str) -> None:
    (text,) = judged({"read_p50_us": 1}, kind, (Layer("memory", "tmpfs", ""),))
    assert "not a drive" in text


def test_nothing_measured_is_nothing_unusual() -> None:
    assert judged({}, classes.NVME_SSD) == ("Nothing was measured, so there is nothing to judge.",)


def test_a_misspelt_value_is_refused() -> None:
    with pytest.raises(ValueError, match="read_p50_ms"):
        judged({"read_p50_ms": 1}, classes.NVME_SSD)


@pytest.mark.parametrize(
    ("gt_s", "lanes", "mb_s"),
    [(2.5, 1, 250), (5, 2, 1000), (8, 4, 3938), (16, 4, 7877), (32, 4, 15754), (1.5, 1, 150), (3, 1, 300), (6, 1, 600)],
)
def test_links_carry_what_their_standards_say(gt_s: float, lanes: float, mb_s: float) -> None:
    """PCIe 1.0 to 5.0, and SATA."""
    assert link_mib_s(gt_s, lanes) == pytest.approx(mb_s * 1e6 / (1 << 20), rel=1e-3)


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), st.floats(0, 1e9)), st.sampled_from(ALL))
def test_any_values_give_one_to_five_whole_sentences(values: dict[str, float], kind: str) -> None:
    found = judged(values, kind)
    assert 1 <= len(found) <= MOST_SENTENCES
    assert len(set(found)) == len(found)
    for text in found:
        assert text.endswith((".", "`"))
        assert "{" not in text
        assert text.count("`") % 2 == 0


def test_too_many_points_are_counted() -> None:
    bad = {"sequential_read_mib_s": 10, "sequential_write_mib_s": 10, "random_read_qd32_iops": 10,
           "random_write_qd32_iops": 10, "read_p50_us": 1000, "commit_p50_us": 90_000}  # fmt: skip
    found = judged(bad, classes.SATA_SSD)
    assert len(found) == MOST_SENTENCES
    assert found[-1].startswith("3 more values are unusual.")


def test_what_is_implausible_comes_first() -> None:
    found = judged({"sequential_write_mib_s": 10, "sequential_read_mib_s": 9000}, classes.SATA_SSD)
    assert [text.split(":")[0] for text in found] == ["Sequential read", "Sequential write"]


def test_a_slow_link_explains_slow_sequential_reads() -> None:
    link = {"link_gt_s": 8, "link_lanes": 1, "link_max_gt_s": 8, "link_max_lanes": 4}
    (text,) = judged({"sequential_read_mib_s": 850, **link}, classes.NVME_SSD)
    assert text.startswith("The link runs at")


def test_commands_exist() -> None:
    """Each `drivelab COMMAND` is a command, and each protocol is in the library."""
    source = "".join(
        Path(f"scripts/drivelab/quick/{name}.py").read_text() for name in ("expectations", "thresholds", "before")
    )
    commands = set(re.findall(r"`\{COMMAND\} ([a-z-]+)", source))
    assert commands
    assert commands <= parser().commands.about.keys()
    protocols = re.findall(r"protocol show ([a-z0-9-]+)", source)
    assert protocols
    for name in protocols:
        assert Path(f"config/protocols/{name}.yaml").is_file()
