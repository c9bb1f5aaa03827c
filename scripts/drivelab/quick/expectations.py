"""Turn measured values into a few sentences: what is unusual for this class of device, and what to look at next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from drivelab.analysis.values.quick_look import CPU_SHARE
from drivelab.core.units import format_factor, format_percentage
from drivelab.host.stack.device_class import (
    CARD,
    CLOUD_VOLUME,
    HARD_DISK,
    MEMORY,
    NETWORK,
    RAM_DISK,
    USB,
)
from drivelab.host.stack.stack import disks
from drivelab.host.stack.volumes import Layer
from drivelab.plan.places import COMMAND
from drivelab.quick.thresholds import KEYS, LIMITS, Limit

MOST_SENTENCES = 5
TAIL_FACTOR = {"read": 100.0, "write": 1000.0, "commit": 100.0}
"""p99.9 to median. Ours: SSDs have 3 to 30 for reads and commits, up to some hundreds for writes into their cache."""
LEAST_QUEUE_GAIN = 1.5
"""IOPS at QD32 to QD1. Ours: SSDs gain a factor of 5 to 30."""
LEAST_MIX_SHARE = 0.2
"""Mix to the slower of reads and writes. Ours: the mix of an SSD is between both, or somewhat below."""
CLIFF_SHARE = 0.35
"""End to start of the sustained write. Ours: less is felt when you copy files."""
LEAST_COMMIT_SHARE = 0.5
"""Commit to write at QD1. A commit contains a write, so ours leaves room for noise and for appends in a cache."""
EARLY_COMMIT_US = 20.0
"""For devices of unknown speed. Ours: a flush through a hypervisor or a network takes longer."""
ROUGH_PCT = 50.0
"""Half of the interval of a mean. Ours: with three rounds, their standard deviation is then 20 % of the mean."""
LINK_MARGIN = 1.02
_SIMPLE = frozenset({"file system", "partition", "LVM", "dm-crypt", "multipath", "disk"})
"""Layers that leave the speed of one disk recognisable."""
_CODING = {8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 22.5: 128 / 150, 64.0: 242 / 256, 128.0: 242 / 256}
"""Share of data by GT/s: PCIe 3.0 to 5.0, SAS-4, PCIe 6.0 and 7.0 (flits); else 8b/10b: SATA, SAS-3, PCIe 1.x, 2.x."""


class _Place(NamedTuple):
    """Where the values were measured."""

    device_class: str
    path: str
    """Quoted for a shell."""
    disk: str
    """Kernel name of the only disk, or `DISK`."""
    encrypted: bool
    busiest_cell: str


def sentences(
    values: Mapping[str, float],
    device_class: str,
    layers: tuple[Layer, ...],
    path: Path,
    busiest_cell: str = "One test",
) -> tuple[str, ...]:
    """Return what is unusual, most important first, or one sentence that nothing is.

    `values` has keys of `drivelab.quick.thresholds.KEYS`; leave out what is unknown. `busiest_cell` names the test with
    `busiest_cpu_share`. Raises ValueError for other keys.
    """
    if unknown := sorted(set(values) - set(KEYS)):
        raise ValueError(f"unknown values: {', '.join(unknown)}")
    if device_class in (MEMORY, RAM_DISK):
        return (f"This place is memory, not a drive. `{COMMAND} drives` lists the drives; choose a folder on one.",)
    below = disks(layers)
    place = _Place(
        device_class,
        shlex.quote(str(path)),
        below[0] if len(below) == 1 else "DISK",
        any(layer.kind == "dm-crypt" for layer in layers),
        busiest_cell,
    )
    single = len(below) == 1 and all(layer.kind in _SIMPLE for layer in layers)
    limits = [limit for limit in LIMITS if single and device_class in limit.classes and limit.key in values]
    too_fast = [limit for limit in limits if _is_plausibility(limit)]
    slow_link = list(_slow_link(values))
    too_slow = [
        limit for limit in limits if limit not in too_fast and not (slow_link and limit.key == "sequential_read_mib_s")
    ]
    found = [
        *_rough(values), *_limits(too_fast, values, place), *_commit(values, place), *_faster_than_link(values),
        *_host_limited(values, place), *slow_link, *_limits(too_slow, values, place),
        *_cliff(values, place), *_queue(values, place), *_mix(values), *_tails(values, place),
    ]  # fmt: skip
    if len(found) > MOST_SENTENCES:
        rest = len(found) - MOST_SENTENCES + 1
        return (*found[: MOST_SENTENCES - 1], f"{rest} more values are unusual. Start with the points above.")
    return tuple(found) or (_ordinary(values, device_class, bool(limits)),)


def _ordinary(values: Mapping[str, float], device_class: str, judged: bool) -> str:
    if not values:
        return "Nothing was measured, so there is nothing to judge."
    if judged:
        return f"Nothing unusual for this class of device ({device_class})."
    return (
        f"Nothing stands out. drivelab knows no ordinary speed for this place ({device_class}), so it compared "
        "the values with each other only."
    )


def link_mib_s(gt_s: float, lanes: float) -> float:
    """Return the data rate of a link without its protocol's overhead, from the speed per lane and its line code."""
    return gt_s * 1e9 * lanes * _CODING.get(gt_s, 0.8) / 8 / (1 << 20)


def _is_plausibility(limit: Limit) -> bool:
    """Return whether a value beyond a limit is too good, not too bad: a high rate or a low latency."""
    return limit.least is not None if limit.key.endswith("_us") else limit.most is not None


def _limits(limits: list[Limit], values: Mapping[str, float], place: _Place) -> Iterator[str]:
    for limit in limits:
        value = values[limit.key]
        low = limit.least is not None and value < limit.least
        high = limit.most is not None and value > limit.most
        if low or high:
            edge, word = (limit.least, "at least") if low else (limit.most, "at most")
            usual = f"{word} {_shown(limit.key, edge or 0.0)}"
            look = limit.look.format(path=place.path, disk=place.disk)
            text = (
                f"{KEYS[limit.key].label}: {_shown(limit.key, value)}; usual for this class ({place.device_class}) is "
            )
            yield f"{text}{usual}. {limit.meaning} {look}".rstrip()


def _shown(key: str, value: float) -> str:
    if key.endswith("_us") and value >= 1000:
        return f"{format_factor(value / 1000)} ms"
    return f"{format_factor(value)} {KEYS[key].unit}"


def _rough(values: Mapping[str, float]) -> Iterator[str]:
    if (widest_pct := values.get("widest_spread_pct", 0.0)) > ROUGH_PCT:
        yield (
            f"The rounds of one test differ so much that its spread is ±{format_percentage(widest_pct)} %, so this "
            "look is rough. Stop other programs and repeat it, or give it more `--time`."
        )


def _commit(values: Mapping[str, float], place: _Place) -> Iterator[str]:
    """Check commits that are too fast for storage; classes with a limit of their own are left to that limit."""
    commit_us, write_us = values.get("commit_p50_us"), values.get("write_p50_us")
    if commit_us is None:
        return
    with_limit = any(place.device_class in row.classes and row.key == "commit_p50_us" for row in LIMITS)
    if commit_us < EARLY_COMMIT_US and not with_limit:
        yield (
            f"A commit (append 4 KiB, fsync) takes {_shown('commit_p50_us', commit_us)}. The cache below is probably "
            "volatile, or a hypervisor acknowledges early, so a power loss can destroy data. Ask who runs the host, "
            "or check the cache mode of the virtual disk."
        )
    elif write_us is not None and commit_us < LEAST_COMMIT_SHARE * write_us:
        yield (
            f"A commit takes {_shown('commit_p50_us', commit_us)}, less than one write of "
            f"{_shown('write_p50_us', write_us)}. So fsync probably does not wait for the drive. "
            f"`findmnt -T {place.path}` shows mount options such as nobarrier."
        )


def _faster_than_link(values: Mapping[str, float]) -> Iterator[str]:
    gt_s, lanes = values.get("link_gt_s"), values.get("link_lanes")
    if not gt_s or not lanes:
        return
    limit = link_mib_s(gt_s, lanes)
    for key in ("sequential_read_mib_s", "sequential_write_mib_s"):
        value = values.get(key)
        if value is not None and value > LINK_MARGIN * limit:
            yield (
                f"{KEYS[key].label}: {_shown(key, value)}, but the link carries at most {_shown(key, limit)}. "
                "The page cache answers, or data are compressed. Repeat with a larger `--size`."
            )


def _slow_link(values: Mapping[str, float]) -> Iterator[str]:
    needed = ("link_gt_s", "link_lanes", "link_max_gt_s", "link_max_lanes")
    if any(not values.get(key) for key in needed):
        return
    gt_s, lanes, most_gt_s, most_lanes = (values[key] for key in needed)
    now, most = link_mib_s(gt_s, lanes), link_mib_s(most_gt_s, most_lanes)
    if now < most / LINK_MARGIN:
        yield (
            f"The link runs at {gt_s:g} GT/s x{lanes:g} of {most_gt_s:g} GT/s x{most_lanes:g}, so it carries "
            f"{_shown('sequential_read_mib_s', now)} instead of {_shown('sequential_read_mib_s', most)}. The slot, an "
            "adapter, the cable or power saving limits it. `lspci -vv` shows both (LnkCap, LnkSta)."
        )


def _host_limited(values: Mapping[str, float], place: _Place) -> Iterator[str]:
    share = values.get("busiest_cpu_share")
    if share is not None and share > CPU_SHARE:
        cause = " Encryption (dm-crypt) is part of it." if place.encrypted else ""
        yield (
            f"{place.busiest_cell} uses {format_percentage(100 * share)} % of a CPU core. So the host limits it, and "
            f"the drive may be faster.{cause} `{COMMAND} doctor` shows CPU settings."
        )


def _cliff(values: Mapping[str, float], place: _Place) -> Iterator[str]:
    start, end, volume_gib = (values.get(k) for k in ("sustained_start_mib_s", "sustained_end_mib_s", "cliff_gib"))
    if not start or end is None or end >= CLIFF_SHARE * start:
        return
    after = f" after {format_factor(volume_gib)} GiB" if volume_gib is not None else ""
    if place.device_class in (CLOUD_VOLUME, NETWORK):
        cause = "Credits for bursts are probably used up. Repeat later with a longer `--time`."
    elif place.device_class == HARD_DISK:
        cause = "A disk does this if it is shingled (SMR). `lsblk -o NAME,ZONED,MODEL` shows zones and model."
    else:
        cause = f"A fast (SLC) cache was probably full. `{COMMAND} protocol show slc-cache` shows how to measure it."
    yield (
        f"The sustained write falls from {_shown('sustained_start_mib_s', start)} to "
        f"{_shown('sustained_end_mib_s', end)}{after}. {cause}"
    )


def _queue(values: Mapping[str, float], place: _Place) -> Iterator[str]:
    """Compare QD32 with QD1; a disk with one arm, and USB or a card without a queue, gain little."""
    iops, latency_us = values.get("random_read_qd32_iops"), values.get("read_p50_us")
    if iops is None or not latency_us or place.device_class in (HARD_DISK, USB, CARD):
        return
    single_iops = 1e6 / latency_us
    if iops < LEAST_QUEUE_GAIN * single_iops:
        yield (
            f"Random reads at QD32 reach {_shown('random_read_qd32_iops', iops)}, QD1 about "
            f"{_shown('random_read_qd32_iops', single_iops)}. So requests are not served in parallel, or a limit of "
            f"IOPS applies. `{COMMAND} protocol show stec-queue-depths` shows how to measure every queue depth."
        )


def _mix(values: Mapping[str, float]) -> Iterator[str]:
    reads, writes, mixed = (values.get(k) for k in ("random_read_qd32_iops", "random_write_qd32_iops", "mixed_iops"))
    if reads is None or writes is None or mixed is None or mixed >= LEAST_MIX_SHARE * min(reads, writes):
        return
    yield (
        f"A mix of 70 % reads and 30 % writes reaches {_shown('mixed_iops', mixed)}, far below reads alone "
        f"({_shown('mixed_iops', reads)}) and writes alone ({_shown('mixed_iops', writes)}). Writes block reads. "
        f"`{COMMAND} protocol show iometer-file-server` shows how to measure mixes."
    )


def _tails(values: Mapping[str, float], place: _Place) -> Iterator[str]:
    """Compare p99.9 with the median, or p99 if there were too few I/Os for p99.9."""
    for access, factor in TAIL_FACTOR.items():
        median_us, is_far = values.get(f"{access}_p50_us"), (place.device_class, access) in _SPREAD
        key, one_in = (f"{access}_p99_9_us", "1,000") if f"{access}_p99_9_us" in values else (f"{access}_p99_us", "100")
        tail_us = values.get(key)
        if median_us and tail_us and tail_us > factor * median_us and not is_far:
            yield (
                f"One {access} in {one_in} takes more than {_shown(key, tail_us)}, "
                f"{format_factor(tail_us / median_us)} times the median. Something interrupts the drive: other I/O, "
                f"power saving, garbage collection or a limit. `{COMMAND} protocol show qos-nines` shows how to "
                "measure tails."
            )


_SPREAD = {(HARD_DISK, "write"), (USB, "write"), (CARD, "write"), (HARD_DISK, "commit"), (CARD, "commit")}
"""A write to a small cache takes microseconds and a write to the medium many milliseconds, so both are ordinary."""
