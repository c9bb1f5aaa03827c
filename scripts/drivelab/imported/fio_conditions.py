"""Turn fio's options into conditions, and into the targets of the I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from drivelab.analysis.deltas.differences import FIO_OPTION, OTHER_OPTIONS

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
_DEFAULTS = {"invalidate": "1", "randrepeat": "1", "fallocate": "native", "mem": "malloc", "scramble_buffers": "1",
             "do_verify": "1", "verify_fatal": "0", "iodepth_batch": "1", "nrfiles": "1", "loops": "1",
             "io_submit_mode": "inline", "zonemode": "none", "random_distribution": "random",
             "percentage_random": "100", "rate_process": "linear"}  # fmt: skip
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
    if value is None or (value == _DEFAULTS.get(name, "0") and name in _ACTING):
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
