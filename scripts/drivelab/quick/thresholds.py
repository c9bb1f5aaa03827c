"""List what is ordinary for each class of device: a table of limits, wide enough for every healthy drive."""

from __future__ import annotations

from typing import NamedTuple

from drivelab.host.stack.device_class import CARD, HARD_DISK, NVME_SSD, SAS_SSD, SATA_SSD, USB
from drivelab.plan.places import COMMAND


class Key(NamedTuple):
    """A measured value: how to name and to print it."""

    label: str
    unit: str


KEYS = {
    "sequential_read_mib_s": Key("Sequential read", "MiB/s"),
    "sequential_write_mib_s": Key("Sequential write", "MiB/s"),
    "random_read_qd32_iops": Key("Random read 4 KiB, QD32", "IOPS"),
    "random_write_qd32_iops": Key("Random write 4 KiB, QD32", "IOPS"),
    "read_p50_us": Key("Median latency of random reads 4 KiB, QD1", "µs"),
    "read_p99_us": Key("p99 latency of random reads 4 KiB, QD1", "µs"),
    "read_p99_9_us": Key("p99.9 latency of random reads 4 KiB, QD1", "µs"),
    "write_p50_us": Key("Median latency of random writes 4 KiB, QD1", "µs"),
    "write_p99_us": Key("p99 latency of random writes 4 KiB, QD1", "µs"),
    "write_p99_9_us": Key("p99.9 latency of random writes 4 KiB, QD1", "µs"),
    "commit_p50_us": Key("Median latency of commits (append 4 KiB, fsync)", "µs"),
    "commit_p99_us": Key("p99 latency of commits (append 4 KiB, fsync)", "µs"),
    "mixed_iops": Key("Mixed 70/30, 4 KiB", "IOPS"),
    "sustained_start_mib_s": Key("Sustained write, start", "MiB/s"),
    "sustained_end_mib_s": Key("Sustained write, end", "MiB/s"),
    "cliff_gib": Key("Written before the cliff", "GiB"),
    "link_gt_s": Key("Link, speed per lane", "GT/s"),
    "link_lanes": Key("Link, lanes", "lanes"),
    "link_max_gt_s": Key("Link, maximum speed per lane", "GT/s"),
    "link_max_lanes": Key("Link, maximum lanes", "lanes"),
    "widest_spread_pct": Key("Widest spread of the rounds of a test", "%"),
    "busiest_cpu_share": Key("CPU share of the busiest test", "of one core"),
}
"""Names of the values that the expectations know. SATA counts as one lane of 1.5, 3 or 6 GT/s."""


class Limit(NamedTuple):
    """A value that no ordinary device of a class passes."""

    classes: tuple[str, ...]
    key: str
    least: float | None
    most: float | None
    meaning: str
    look: str
    """What to do next; `{path}` and `{disk}` are filled in."""
    source: str
    """Why the limit is where it is."""


_SSD = (NVME_SSD, SATA_SSD, SAS_SSD)
_DOCTOR = f"`{COMMAND} doctor {{disk}}` shows settings for power and link."
_TRIM = "Free unused blocks with `fstrim -v {path}` as root, wait some minutes and repeat."
_CACHED = "A cache answers instead of the drive, or data are compressed. Repeat with a larger `--size`."

LIMITS = (
    Limit((NVME_SSD,), "sequential_read_mib_s", 1000, None, "The link, heat or another program may limit it.",
          "`lspci -vv` shows the link (LnkCap, LnkSta). " + _DOCTOR,
          "ours: PCIe 3.0 x2, the slowest link of current drives, carries 1,879 MiB/s"),
    Limit((NVME_SSD,), "sequential_write_mib_s", 150, None, "Its cache was full, or it has few free blocks.", _TRIM,
          "ours: drives with QLC flash reach about 100 MB/s only after their cache (reviews of the Intel 660p)"),
    Limit((NVME_SSD,), "random_read_qd32_iops", 20_000, None, "Heat, power saving or the CPU may limit it.", _DOCTOR,
          "ours: the first client drives with four channels are specified from 35,000 IOPS"),
    Limit((NVME_SSD,), "random_write_qd32_iops", 8_000, None, "Its cache was full, or it has few free blocks.", _TRIM,
          "ours: in steady state, client drives fall to 10,000 to 30,000 IOPS"),
    Limit((NVME_SSD,), "read_p50_us", None, 250, "Power saving of CPU, link or drive may add latency.", _DOCTOR,
          "ours: TLC flash is read in 50 to 100 µs, QLC in up to 170 µs"),
    Limit((NVME_SSD,), "commit_p50_us", None, 15_000, "The drive flushes its cache slowly.",
          "`nvme get-feature /dev/{disk} -f 6` shows the write cache; a drive with power loss protection is faster.",
          "public: 3.5 ms for a Samsung 960 Pro (Percona, 2018), 1 to 5 ms for others; ours: a factor of 3 above"),
    Limit((SATA_SSD,), "sequential_read_mib_s", 300, None, "The link may run at 3 Gbit/s, which carries 286 MiB/s.",
          "`dmesg | grep -i 'SATA link up'` as root shows the speed; try another port or cable.",
          "SATA 3.x: 3 Gbit/s with 8b/10b coding is 286 MiB/s; SSDs at 6 Gbit/s read about 500"),
    Limit((SATA_SSD, SAS_SSD), "sequential_write_mib_s", 60, None, "Its cache was full, or it has few free blocks.",
          _TRIM, "ours: QLC drives fall to 80 MB/s only after their cache (reviews of the Samsung 860 QVO)"),
    Limit((SATA_SSD, SAS_SSD), "random_read_qd32_iops", 8_000, None, "The queue may be off, or the port is slow.",
          "`cat /sys/block/{disk}/device/queue_depth` must show 31 or more. " + _DOCTOR,
          "ours: one request at a time gives 8,000 to 12,000 IOPS; a queue gives 30,000 and more"),
    Limit((SATA_SSD, SAS_SSD), "random_write_qd32_iops", 2_000, None,
          "Its write cache may be off, or it has few free blocks.",
          "`hdparm -W /dev/{disk}` shows the write cache. " + _TRIM,
          "ours: in steady state, client drives fall to 3,000 to 20,000 IOPS"),
    Limit((SATA_SSD, SAS_SSD), "read_p50_us", None, 500, "Power saving of CPU, link or drive may add latency.", _DOCTOR,
          "ours: typical are 80 to 200 µs"),
    Limit((SATA_SSD, SAS_SSD), "commit_p50_us", None, 30_000, "The drive flushes its cache slowly.",
          "`hdparm -W /dev/{disk}` shows the write cache.", "ours: typical are 0.5 to 10 ms"),
    Limit((HARD_DISK,), "sequential_read_mib_s", 50, None, "Failing sectors, vibration or a slow port may limit it.",
          "`smartctl -a /dev/{disk}` as root shows errors.", "ours: inner tracks of 5,400 rpm laptop disks read 50"),
    Limit((HARD_DISK,), "sequential_write_mib_s", 30, None, "Its write cache may be off, or it is shingled (SMR).",
          "`hdparm -W /dev/{disk}` shows the write cache.", "ours: with the cache on, writes are as fast as reads"),
    Limit((HARD_DISK,), "random_read_qd32_iops", 40, None, "Retries of weak sectors or other programs may slow it.",
          "`smartctl -a /dev/{disk}` as root shows errors.", "ours: a seek and half a turn at 5,400 rpm take 20 ms"),
    Limit((HARD_DISK,), "read_p50_us", None, 35_000, "Retries of weak sectors or other programs may slow it.",
          "`smartctl -a /dev/{disk}` as root shows errors.", "ours: a seek and half a turn at 5,400 rpm take 20 ms"),
    Limit((HARD_DISK,), "commit_p50_us", None, 250_000, "Other programs may use it, or it is shingled (SMR).",
          "`smartctl -a /dev/{disk}` as root shows errors.", "ours: a commit takes a few turns of 11 ms"),
    Limit((USB,), "sequential_read_mib_s", 45, None, "The port, the cable or a hub may run at USB 2.0.",
          "`lsusb -t` shows the speed (480M is USB 2.0); try another port or cable.",
          "USB 2.0: 480 Mbit/s carry at most 53 MB/s of bulk data"),
    Limit((CARD,), "sequential_read_mib_s", 10, None, "The card may be worn or counterfeit, or the reader is slow.",
          "Try another reader; `dmesg | grep -i mmc` as root shows errors.", "SD speed class 10: at least 10 MB/s"),
    # Too fast to come from the drive.
    Limit((SATA_SSD,), "sequential_read_mib_s", None, 600, _CACHED, "", "SATA 3.x: 6 Gbit/s carry 572 MiB/s"),
    Limit((SATA_SSD,), "sequential_write_mib_s", None, 600, _CACHED, "", "SATA 3.x: 6 Gbit/s carry 572 MiB/s"),
    Limit((HARD_DISK,), "sequential_read_mib_s", None, 600, _CACHED, "",
          "public: disks with two actuators are specified up to 554 MB/s (Seagate Exos 2X18)"),
    Limit((HARD_DISK,), "random_read_qd32_iops", None, 2_000, _CACHED, "",
          "ours: a disk with two actuators makes about 1,000 seeks within a small file"),
    Limit((HARD_DISK,), "read_p50_us", 1_000, None, _CACHED, "", "ours: half a turn at 15,000 rpm takes 2 ms"),
    Limit((HARD_DISK,), "commit_p50_us", 1_500, None,
          "No disk turns so quickly, so a cache acknowledges the flush. If it is volatile, a power loss destroys data.",
          "`hdparm -W /dev/{disk}` shows the write cache.", "ours: half a turn at 15,000 rpm takes 2 ms"),
    Limit((SATA_SSD, SAS_SSD), "commit_p50_us", 35, None,
          "A flush to flash takes longer, so it probably does not reach it. A power loss could destroy data.",
          "Mount options and `cat /sys/block/{disk}/queue/write_cache` show whether flushes are sent.",
          "ours: write and flush are two commands of at least 20 µs each"),
    Limit((NVME_SSD,), "commit_p50_us", 10, None,
          "A write and a flush take longer, so they probably do not reach the drive. A power loss could destroy data.",
          "Mount options and `cat /sys/block/{disk}/queue/write_cache` show whether flushes are sent.",
          "public: fsync alone takes 12 µs and more on drives with power loss protection (smalldatum, January 2026)"),
    Limit(_SSD, "read_p50_us", 5, None, _CACHED, "", "ours: the fastest drives (Optane P5800X) answer in 6 µs"),
)  # fmt: skip
"""Rows that need no class of their own are relations, in `expectations`."""
