"""Read fio's job options: the cell, conditions and targets of a run, and whether it repeats another run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from drivelab.analysis.deltas.differences import FIO_OPTION, OTHER_OPTIONS
from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.imported.fio_numbers import RefusalError
from drivelab.plan.cell import Cell

PATTERNS = {
    "read": ("sequential", 100),
    "write": ("sequential", 0),
    "randread": ("random", 100),
    "randwrite": ("random", 0),
    "rw": ("sequential", None),
    "readwrite": ("sequential", None),
    "randrw": ("random", None),
}
"""Pattern and share of reads, by `rw`; None if `rwmixread` gives the share."""
ENGINE, DIRECT = "psync", "0"
"""fio's defaults."""
_DEFAULTS = {"bs": "4096", "iodepth": "1", "numjobs": "1", "rwmixread": "50"}
"""fio's defaults of the options that define a cell. `rw` has one too, but a file without `rw` lost its options."""
_OTHER_NAMES = {"readwrite": "rw", "blocksize": "bs"}
_UNSUPPORTED = {"bsrange": "", "bssplit": "", "zonemode": "none", "zonesize": "0",
           "random_distribution": "random", "percentage_random": "100", "read_iolog": ""}  # fmt: skip
"""Options that a cell cannot express, and the value with which they have no effect."""
_LIMITS = {"rate": "0", "rate_min": "0", "rate_iops": "0", "rate_iops_min": "0", "rate_process": "linear",
           "thinktime": "0", "latency_target": "0", "flow": "0"}  # fmt: skip
"""Options that limit the drive's performance, and the value that means no limit."""
_NAMES_AND_FILES = ("name", "description", "filename", "directory", "filename_format")
_LOGS = re.compile(r"write_\w+_log|log_\w+|per_job_logs")
_OF_ONE_JOB = {*_NAMES_AND_FILES, "offset", "cpus_allowed", "numa_cpu_nodes"}
"""Options that may differ between jobs of one workload, as may the names of logs."""
_SYNCHRONOUS = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
"""Engines that wait for each I/O, so one I/O is in flight whatever `iodepth` says."""
_MOSTLY_PCT = 99.0
_MOST_NAMES = 4
_WHOLE = re.compile(r"[0-9]{1,9}")
_SIZE = re.compile(r"([0-9]+)\s*(?:([kmgt])(?:i?b)?|b)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def named(*given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a job under their main names, as text; later ones override.

    `filename` adds a target instead. `rwmixwrite` and `buffered` are the opposites of `rwmixread` and `direct`.
    """
    options: dict[str, str] = {}
    for name, value in chain(*(part.items() for part in given)):
        name, text = _OTHER_NAMES.get(name, name), str(value)
        if name == "filename" and name in options:
            text = f"{options[name]}:{text}"
        elif name == "rwmixwrite" and _WHOLE.fullmatch(text):
            name, text = "rwmixread", str(100 - int(text))
        elif name == "buffered":
            name, text = "direct", "0" if text == "1" else "1"
        options[name] = text
    return options


def size_bytes(text: str) -> int:
    """Return the bytes of a size in fio's notation: `4k`, `1m`, `4KiB`, `512`; raises ValueError for others."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"'{text}' is not a size")
    return int(match[1]) * _FACTORS[(match[2] or "").lower()]


def cell_of(jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> Cell:
    """Return the cell that all jobs of a file measure together; raises RefusalError if there is none."""
    _refuse_several_jobs(jobs, options)
    targets = target_names(options)
    if len({place(name) for name in targets}) > 1:
        raise RefusalError(
            f"has several targets, {' and '.join(targets)}, whose I/Os fio adds up",
            f"run fio for each target by itself, such as --filename={targets[0]}",
        )
    if "rw" not in options[0]:
        raise RefusalError(
            "has no rw in its job options or global options, so its workload is unknown",
            "import fio's JSON unchanged, or give rw to fio",
        )
    merged = {**_DEFAULTS, **options[0]}
    _refuse_unsupported(merged)
    if merged["rw"] not in PATTERNS:
        raise RefusalError(f"has the workload rw={merged['rw']}", f"import files of {', '.join(PATTERNS)}")
    pattern, share = PATTERNS[merged["rw"]]
    read_share = _whole(merged, "rwmixread", 0, 100) if share is None else share
    if read_share < 100:
        _refuse_verification(merged)
    # a group that fio reports as one has a single job here, whatever its number of processes
    numjobs = _whole(merged, "numjobs", 1)
    threads = len(jobs) if len(jobs) > 1 else numjobs
    depth = _whole(merged, "iodepth", 1)
    in_flight = 1 if all(_waits(job, merged) for job in jobs) else depth
    return Cell(pattern, read_share, _block_bytes(merged, read_share), threads, in_flight)


def _refuse_several_jobs(jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> None:
    """Raise RefusalError for jobs with different options, and for several groups of jobs."""
    first = options[0]
    differing = {
        name
        for job in options
        for name in {*first, *job}
        if first.get(name) != job.get(name) and name not in _OF_ONE_JOB and not _LOGS.fullmatch(name)
    }
    groups = len({job.get("groupid", 0) for job in jobs})
    if not differing and groups == 1:
        return
    names = list(dict.fromkeys(str(job.get("jobname")) for job in jobs))
    shown = some(names, _MOST_NAMES)
    different = f", which differ in {', '.join(sorted(differing))}" if differing else ""
    in_groups = f", in {groups} groups; fio does not say which ran at the same time" if groups > 1 else ""
    raise RefusalError(
        f"has several jobs ({shown}){different}{in_groups}",
        f"run each by itself, such as fio --section={names[0]} --output-format=json+ --output={names[0]}.json JOBFILE",
    )


def _refuse_verification(options: Mapping[str, str]) -> None:
    """Raise RefusalError if fio reads back what it wrote, and counts these reads with the others."""
    read_back = options.get("do_verify", "1") != "0" or options.get("verify_backlog", "0") != "0"
    if options.get("verify", "0") != "0" and read_back:
        raise RefusalError(
            f"has the option verify={options['verify']}: fio read back what it wrote, and counted these reads too",
            "run fio with --do_verify=0, or without verify",
        )


def _block_bytes(options: Mapping[str, str], read_share: int) -> int:
    """Return the only block size of reads and writes; fio's `KiB` is 1000 B unless `kb_base` is 1000."""
    text = options["bs"]
    if options.get("kb_base", "1024") != "1024" and not text.isdigit():
        reason = f"has bs={text} with kb_base={options['kb_base']}, so its unit depends on the order of the options"
        raise RefusalError(reason, "run fio with the block size in bytes, such as --bs=4096")
    parts = [part.strip() or _DEFAULTS["bs"] for part in text.split(",")]
    used = parts[:1] * (read_share > 0) + parts[:2][-1:] * (read_share < 100)
    sizes = {_in_fio(part) for part in used}
    if len(sizes) > 1:
        raise RefusalError(f"has several block sizes, bs={text}", "run fio once for each block size")
    return sizes.pop()


def _in_fio(text: str) -> int:
    """Return the bytes of a size as fio 3 reads it: `4k` is 4096, `4KiB` is 4000."""
    count, unit = text[: -len("kib")], text[-len("kib") :].lower()
    return (
        int(count) * 1000 ** ("kmgt".index(unit[0]) + 1)
        if _SIZE.fullmatch(text) and unit[1:] == "ib"
        else size_bytes(text)
    )


def asked_depth(options: Mapping[str, str]) -> int:
    """Return the requested `iodepth`, from options that `cell_of` accepted."""
    return int(options.get("iodepth", _DEFAULTS["iodepth"]))


def refuse_unlike_repeats(root: Path, runs: Iterable[tuple[str, Path, Mapping[str, str]]]) -> None:
    """Raise UserError if runs of one cell, each with label, file and options, have different options."""
    first: dict[str, tuple[Path, dict[str, str]]] = {}
    for label, path, options in runs:
        path_of_io = {"ioengine": options.get("ioengine", ENGINE), "direct": options.get("direct", DIRECT)}
        relevant = {**path_of_io, **acting(options)}
        known_path, known = first.setdefault(label, (path, relevant))
        for name in sorted({*known, *relevant}):
            if known.get(name) != relevant.get(name):
                both = " and ".join(
                    f"{f'{name}={values[name]}' if name in values else f'without {name}'} ({file.name})"
                    for values, file in ((known, known_path), (relevant, path))
                )
                raise UserError(
                    f"{root}: has repeats of {label} whose options differ, {both}, which are never pooled; import one "
                    "set of options at a time"
                )


def _refuse_unsupported(options: Mapping[str, str]) -> None:
    for known, reason, remedy in (
        (_UNSUPPORTED, "which drivelab cannot import", "leave the file out"),
        (_LIMITS, "which limits the drive's performance", "leave the file out, or run fio without the option"),
    ):
        for name, neutral in known.items():
            if name in options and not {part.strip() for part in options[name].split(",")} <= {neutral, ""}:
                raise RefusalError(f"has the option {name}={options[name]}, {reason}", remedy)


def _whole(options: Mapping[str, str], name: str, least: int, most: int | None = None) -> int:
    text = options[name]
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= (int(text) if most is None else most):
        span = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise RefusalError(f"has the option {name}={text}, which is not a whole number {span}", "leave the file out")
    return int(text)


def _waits(job: Mapping[str, Any], options: Mapping[str, str]) -> bool:
    """Whether one I/O is in flight at a time; fio's counts take precedence over the engine."""
    if options.get("ioengine", ENGINE) not in _SYNCHRONOUS:
        return False
    levels = job.get("iodepth_level")
    return levels is None or float(levels.get("1", 0)) >= _MOSTLY_PCT


DEFAULT = "fio's default"
UNKNOWN_OPTION = "(unknown to drivelab)"
FLAGS = "fio: options without a value"
"""Facet that is never recorded: fio omits options such as `norandommap`, `thread` and `time_based` from its JSON."""
_PRINTED = re.compile(
    r"name|description|filename|directory|group_reporting|(clat|lat|slat)_percentiles|percentile_list|randseed"
    r"|block_error_percentiles|significant_figures|disk_util|unit_base|kb_base|error_dump|bwavgtime|iopsavgtime"
    r"|write_\w+_log|log_\w+|per_job_logs"
)
"""Options that name something or select what fio prints."""
_OF_THE_CELL = frozenset({"rw", "bs", "iodepth", "numjobs", "rwmixread", "ioengine", "direct"})
"""Options with their own column or facet."""
_ACTING_DEFAULTS = {
    "invalidate": "1", "randrepeat": "1", "fallocate": "native", "mem": "malloc", "scramble_buffers": "1",
    "do_verify": "1", "verify_fatal": "0", "iodepth_batch": "1", "nrfiles": "1", "loops": "1",
    "io_submit_mode": "inline", "zonemode": "none", "random_distribution": "random", "percentage_random": "100",
    "rate_process": "linear",
}  # fmt: skip
"""fio's defaults other than 0."""
_ACTING = frozenset(
    """
    lockfile filename_format unique_filename opendir ba bsrange bssplit bs_unaligned randrepeat norandommap
    ignore_error rw_sequencer iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low
    serialize_overlap io_submit_mode size io_size fill_device filesize file_append offset offset_increment offset_align
    number_ios random_generator random_distribution percentage_random allrandrepeat nrfiles file_service_type openfiles
    fallocate fadvise_hint fsync fdatasync write_barrier sync_file_range atomic overwrite loops startdelay runtime
    time_based verify_only ramp_time clocksource mem iomem verify do_verify verify_interval verify_offset
    verify_pattern verify_fatal verify_dump verify_async verify_async_cpus verify_backlog verify_backlog_batch
    verify_state_load verify_state_save experimental_verify trim_percentage trim_verify_zero trim_backlog
    trim_backlog_batch write_iolog read_iolog replay_no_stall replay_redirect replay_scale replay_align
    replay_time_scale replay_skip exec_prerun exec_postrun ioscheduler zonemode zonesize zonecapacity zonerange
    zoneskip read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits zone_reset_threshold
    zone_reset_frequency lockmem nice prio prioclass thinktime thinktime_spin thinktime_blocks thinktime_blocks_type
    thinktime_iotime rate rate_min rate_process rate_cycle rate_ignore_thinktime rate_iops rate_iops_min max_latency
    latency_target latency_window latency_percentile latency_run invalidate sync write_hint create_serialize
    create_fsync create_on_open create_only allow_file_create allow_mounted_write pre_read cpumask cpus_allowed
    cpus_allowed_policy numa_cpu_nodes numa_mem_policy end_fsync fsync_on_close unlink unlink_each_loop exitall
    exit_what exitall_on_error stonewall new_group wait_for thread stats zero_buffers refill_buffers scramble_buffers
    buffer_pattern buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode
    dedupe_working_set_percentage dedupe_global disable_lat disable_clat disable_slat disable_bw_measurement
    gtod_reduce gtod_cpu unified_rw_reporting continue_on_error profile cgroup cgroup_nodelete cgroup_weight uid gid
    hugepage-size flow_id flow flow_watermark flow_sleep steadystate steadystate_duration steadystate_ramp_time
    hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored uncached nowait
    force_async cmd_type cmdprio cmdprio_bssplit cmdprio_class cmdprio_percentage userspace_reap readfua writefua
    sg_write_mode stream_id thp md_per_io_size pi_act pi_chk apptag apptag_mask dataplacement plids fdp fdp_pli
    clientname clustername rbdname pool busy_poll conf touch_objects
    """.split()  # noqa: SIM905
)
"""Options of fio and of its engines that act on the measurement (HOWTO)."""


def acting(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that act on the measurement besides those of its cell."""
    return {name: value for name, value in options.items() if name not in _OF_THE_CELL and not _PRINTED.fullmatch(name)}


def conditions(of_jobs: Iterable[Mapping[str, str]]) -> dict[str, str | None]:
    """Return the facets of all options that act on the measurement; several values are joined.

    Options that no job has are those of OTHER_OPTIONS: fio's defaults. An option that drivelab does not know is shown
    with UNKNOWN_OPTION.
    """
    of_all = [acting(options) for options in of_jobs]
    facets: dict[str, str | None] = {}
    for name in sorted({name for options in of_all for name in options}):
        values = {_shown(name, options.get(name)) for options in of_all}
        if values != {DEFAULT}:
            facets[FIO_OPTION + name] = " | ".join(sorted(values))
    return {**facets, OTHER_OPTIONS: DEFAULT, FLAGS: None}


def _shown(name: str, value: str | None) -> str:
    if value is None or (value == _ACTING_DEFAULTS.get(name, "0") and name in _ACTING):
        return DEFAULT
    shown = value or "given without a value"
    return shown if name in _ACTING else f"{shown} {UNKNOWN_OPTION}"


_SEPARATOR = re.compile(r"(?<!\\):")


def target_names(of_jobs: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the drives, files or folders (with a slash at the end) that the jobs name, each once.

    Colons separate names; a backslash keeps a colon in a name.
    """
    names: dict[str, None] = {}
    for options in of_jobs:
        folders = _SEPARATOR.split(options.get("directory", ""))
        files = _SEPARATOR.split(options.get("filename", ""))
        given = [f"{folder.rstrip('/')}/" for folder in folders if folder] or [file for file in files if file]
        names |= dict.fromkeys(name.replace("\\:", ":") for name in given)
    return list(names)


def place(name: str) -> str:
    """Return the drive or folder of a target: files in one folder are on one drive."""
    return name.rpartition("/")[0] if name.startswith("/") and not name.startswith("/dev/") else name
