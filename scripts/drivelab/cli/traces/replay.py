"""`drivelab replay`: replay a trace once on a drive, a loop device or a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.cli.completion import completed_by, traces
from drivelab.core.errors import UserError
from drivelab.core.terminal import say
from drivelab.core.units import format_amount, parse_duration, parse_size

if TYPE_CHECKING:
    from drivelab.plan.replay_choice import ReplayChoice
    from drivelab.replay.once import Manner


_DELAYS = {"depth": "waiting for a free queue slot", "dependency": "waiting for an earlier completion"}


def add_parser(commands: Any) -> None:
    """Register `replay`."""
    parser = commands.add_parser(
        "replay",
        help="replay a trace once",
        description="Replays a trace on a drive in its present state. Reports how faithful the replay was and how the "
        "drive performed. To compare drives, with purge, preconditioning and repeats, use the protocol trace-replay "
        "in a study. docs/replay.md explains timing, mapping and every number.",
    )
    words = "trace in Parquet, or a name of the catalogue in traces/"
    completed_by(parser.add_argument("trace", metavar="TRACE", help=words), traces)
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--target", help="drive of the drive sheet, or path of a loop device or file that you own")
    to.add_argument(
        "--volume", action="append", default=[], metavar="NAME=TARGET",
        help="target of a volume, if the trace has several; one for each",
    )  # fmt: skip
    parser.add_argument(
        "--skip-volume", action="append", default=[], metavar="NAME", help="leave this volume out; repeatable"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="Parquet file to write, one row per request"
    )
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    parser.add_argument("--yes", action="store_true", help="allow drivelab to destroy the data on the target")
    parser.add_argument(
        "--drives", type=Path, default=Path("config/drives.tsv"), metavar="SHEET", help="the drive sheet"
    )
    when = parser.add_argument_group("when requests are issued")
    when.add_argument(
        "--timing",
        choices=("original", "scaled", "asap", "idle-capped"),
        default="original",
        help="as in the trace (original), scaled, as soon as possible (asap), or with long gaps cut (idle-capped)",
    )
    when.add_argument("--factor", type=float, help="scaled: factor on the times between requests; 0.5 is twice as fast")
    when.add_argument("--idle-cap", metavar="TIME", help="idle-capped: the longest gap between requests, such as 100ms")
    when.add_argument(
        "--depth", type=int, help="asap: requests in flight (default: as many as in the trace at each time)"
    )
    when.add_argument("--dependencies", choices=("none", "process", "cpu", "trace"), default="none",
                      help="a request waits for the last that its process, CPU or the trace saw complete")  # fmt: skip
    when.add_argument("--conflicts", choices=("as-traced", "ordered", "refused"), default="as-traced",
                      help="a request that overlaps an earlier one by address, and one of them writes: issue it as in "
                      "the trace, let it wait, or refuse the trace if both are in flight together")  # fmt: skip
    where = parser.add_argument_group("where they go")
    mappings = ("auto", "exact", "modulo", "scale", "compact")
    where.add_argument(
        "--mapping", choices=mappings, default="auto", help="auto: exact if all offsets fit, else modulo"
    )
    where.add_argument("--range-start", metavar="SIZE", help="start of the active range, such as 1GiB")
    where.add_argument("--range", metavar="SIZE", help="length of the active range (default: to the end of the target)")
    how = parser.add_argument_group("how they are issued")
    how.add_argument("--engine", choices=("native", "fio"), default="native", help="replay engine (default: native)")
    how.add_argument("--prefill", action="store_true", help="first write everything that the trace reads")
    how.add_argument(
        "--verify", action="store_true", help="compare what reads return, and afterwards read back what was written"
    )
    how.add_argument("--go-on", action="store_true", help="continue after a failed request (default: end the replay)")
    how.add_argument("--depth-limit", type=int, metavar="N", help="most requests in flight")
    how.add_argument("--watchdog", default="60s", metavar="TIME", help="longest time without a completion")
    how.add_argument("--threads", type=int, metavar="N",
                     help="threads that issue requests (default: as many as rate and CPUs need)")  # fmt: skip
    how.add_argument("--cpus", metavar="LIST", help="a CPU for each thread, such as 2,3, which also gives their number")
    how.add_argument("--polled", action="store_true", help="poll the drive for completions, without interrupts")
    how.add_argument("--kernel-thread", action="store_true", help="a thread of the kernel submits (SQPOLL)")
    how.add_argument("--nvme", action="store_true", help="send NVMe commands, past the block layer (/dev/ngXnY)")
    how.add_argument("--realtime", type=int, metavar="PRIORITY", help="priority under SCHED_FIFO, 1 to 99")
    how.add_argument("--unwatched", action="store_true", help="do not record the replay with the kernel's tracer")
    parser.set_defaults(handler=_replay)


def _replay(options: argparse.Namespace) -> int:
    from drivelab.host.temporary import recover_all
    from drivelab.replay.verify.verification import wrong_blocks
    from drivelab.replay.volumes import ONLY
    from drivelab.run.replays import replay_targets, single_replay
    from drivelab.trace import trace_catalogue

    trace = trace_catalogue.locate(options.trace)
    for message in recover_all():
        say(message, stderr=True)
    report = single_replay.replay(
        trace,
        {ONLY: options.target} if options.target is not None else replay_targets.targets_of(trace, options.volume),
        options.output,
        _choice(options),
        _manner(options),
        sheet=options.drives,
        skipped=options.skip_volume,
        prefill=options.prefill,
        destroy=options.yes,
        verify=options.verify,
    )
    print(json.dumps(report, indent=1) if options.json else "\n".join(lines(report, options.output)))
    if report["state"] == "interrupted":
        return 130
    return 1 if report["partial"] or report["failed_requests"] or wrong_blocks(report["data_check"] or {}) else 0


def _choice(options: argparse.Namespace) -> ReplayChoice:
    from drivelab.plan.replay_choice import MappingChoice, ReplayChoice, TimingChoice

    cap_s = None if options.idle_cap is None else parse_duration(options.idle_cap)
    range_bytes = None if options.range is None else parse_size(options.range)
    start_bytes = 0 if options.range_start is None else parse_size(options.range_start)
    return ReplayChoice(
        TimingChoice(options.timing, factor=options.factor, idle_cap_s=cap_s, depth=options.depth),
        MappingChoice(options.mapping, range_start_bytes=start_bytes, range_bytes=range_bytes),
        options.dependencies,
        options.conflicts,
    )


def _manner(options: argparse.Namespace) -> Manner:
    from drivelab.plan.replay_choice import MOST_IN_FLIGHT
    from drivelab.replay.native import EngineOptions
    from drivelab.replay.once import Manner

    engine = EngineOptions(
        depth_limit=MOST_IN_FLIGHT if options.depth_limit is None else options.depth_limit,
        watchdog_s=parse_duration(options.watchdog),
        go_on=options.go_on,
        threads=options.threads,
        cpus=_cpus(options.cpus),
        polled=options.polled,
        kernel_thread=options.kernel_thread,
        nvme=options.nvme,
        realtime_priority=options.realtime,
    )
    return Manner(options.engine, engine, watched=not options.unwatched)


def _cpus(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(map(int, text.split(",")))
    except ValueError:
        raise UserError(f"--cpus '{text}': give a CPU for each thread, such as 2,3") from None


def lines(report: Mapping[str, Any], output: Path) -> Iterator[str]:
    """Yield the lines of a summary of the replay."""
    yield from map(_mark, report["marks"])
    yield f"{report['trace']['name']} on {report['target']['label']}: {report['timing']}, engine {report['engine']}"
    yield from _host(report)
    volumes = report.get("volumes", {})
    if len(volumes) != 1:  # the results of one volume are those of the whole replay
        yield from [*_kernel(report), *_part(report)]
    for name, part in volumes.items():
        yield f"volume {name} on {part['target']['label']}:"
        own_marks = [_mark(mark) for mark in part["marks"] if mark not in report["marks"]]
        is_told = len(volumes) > 1 and not part["kernel"] and part["kernel_reason"] == report["kernel_reason"]
        yield from (f"  {line}" for line in [*own_marks, *([] if is_told else _kernel(part)), *_part(part)])
    yield f"requests: {output}"


def _mark(mark: str) -> str:
    return f"{mark.partition(':')[0].upper()}:{mark.partition(':')[2]}" if ":" in mark else mark


def _host(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about how the whole replay was issued."""
    if report["issued_by"] not in (None, "1 thread"):
        yield f"issued by {report['issued_by']}"
    if wakeup := report["host"]["wakeup_us"]:
        yield f"wake-up delay of this host: {_spread(wakeup)}"


def _kernel(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the kernel saw of a replay, or of one of its volumes."""
    if seen := report["kernel"]:
        lossy = f"; LOSSY: its trace lacks {seen['lost']} events" if seen["lost"] else ""
        yield f"the kernel saw: {seen['missing']} requests missing, {seen['extra']} from other sources{lossy}"
        if seen["bursts"] and seen["bursts"]["planned"]:
            yield "bursts of up to {largest}: {kept} of {planned} within {kept_within_us:g} µs".format(**seen["bursts"])
    else:
        yield f"no kernel trace of the replay: {report['kernel_reason']}"


def _part(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the results of a replay, or of one of its volumes."""
    yield _fidelity(report)
    overlaps = report["overlaps"]
    if overlaps["trace"] or overlaps["replay"]:
        counts = {"in the replay": overlaps["replay"], "in the trace": overlaps["trace"]}
        known = ", ".join(f"{count:,} {where}" for where, count in counts.items() if count is not None)
        yield f"requests that overlap another in flight, which writes or is overwritten: {known}"
    yield from _times(report)
    for name, planned in report["planned"].items():
        if planned["requests"]:
            issued, done = report["issued"][name], report["completed"][name]
            yield (
                f"  {name}: {issued['requests']:,} of {planned['requests']:,} issued, {done['requests']:,} completed"
                + (f", {format_amount(done['bytes'])}" if done["bytes"] else "")
            )
    yield f"access time {_us(report['access_time_us'])}, read {_us(report['read_access_time_us'])}, " + (
        f"write {_us(report['write_access_time_us'])}; bandwidth {_number(report['bandwidth_mib_s'])} MiB/s"
        + (f" over {report['busy_s']:.3f} s busy" if report["busy_s"] is not None else "")
    )
    if report["score"] is not None:
        yield f"score {_number(report['score'])}: {report['score_formula']}"
    spread = report["latency_us"]
    yield f"latency: {_spread(spread)}"
    if spread := report["response_us"]:
        yield "response, from when a request was due: " + _spread(spread)
    trace_mean = report["comparison"]["trace_latency_us"]["mean"]
    if trace_mean is not None:
        yield f"in the trace the mean was {_us(trace_mean)}"
    depths = [f"{_depth(depth)} in the {where}" for where, depth in report["in_flight"].items() if depth["most"]]
    if depths:
        yield f"requests in flight: {', '.join(depths)}"
    if report["data_check"]:
        yield from data_lines(report["data_check"])


def data_lines(checked: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a summary of a data check; it may lack the reads, or the check at the end."""
    if reads := checked.get("reads"):
        if reads["required_blocks"] or reads["examples"]:
            yield from _verdict("reads", reads, "read blocks had been written before")
        else:
            yield "reads: no block was written before it was read, so there was nothing to compare"
        if reads["unseen_blocks"]:
            yield f"  {reads['unseen_blocks']:,} read blocks were not looked at, because the engine was killed"
    if "power_cut" in checked:
        when = "after a power cut" if checked["power_cut"] else "after the replay"
        yield from _verdict("data check", checked, f"blocks had to be there {when}")
    else:
        yield "data check: not read back, because a drive hung or the engine was killed; 'drivelab check-data' does it"


def _verdict(title: str, checked: Mapping[str, Any], what: str) -> Iterator[str]:
    faults = [
        f"{checked[name]:,} {name}" for name in ("lost", "torn", "misdirected", "unreadable") if checked.get(name)
    ]
    counts = f"{checked['required_blocks']:,} of {checked['checked_blocks']:,} {what}"
    yield f"{title}: {counts}; {'DATA WRONG: ' if faults else ''}{', '.join(faults) or 'all are as written'}"
    yield from (f"  {example}" for example in checked["examples"])


def _spread(spread: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {_us(value)}" for name, value in spread.items() if value is not None)


def _fidelity(report: Mapping[str, Any]) -> str:
    ratio = report["duration_ratio"]
    text = "duration ratio unknown" if ratio is None else f"duration ratio {ratio:.4f} ({report['duration_basis']})"
    seen = (report["kernel"] or {}).get("order_inversions")
    counts = {"by the engine": report["order_inversions"], "by the kernel": seen}
    inversions = ", ".join(f"{count:,} {source}" for source, count in counts.items() if count is not None)
    return f"{text}; out of order: {inversions or 'unknown'}; mapping {report['mapping']['method']}"


def _times(report: Mapping[str, Any]) -> Iterator[str]:
    seen = report["kernel"]
    for source, errors in (("engine", report["issue_error_us"]), ("kernel", seen and seen["issue_error_us"])):
        if errors:
            known = [name for name in ("p50", "p95", "p99", "max") if errors[name] is not None]
            percentiles = ", ".join(f"{name} {_us(errors[name])}" for name in known)
            yield f"issue error by the {source}: {percentiles}; within 50 µs {errors['within_50us_pct']:.2f} %"
    for cause, late in (report["lateness_by"] or {}).items():
        if cause != "host" and late["requests"]:
            yield f"late, {_DELAYS[cause]}: {late['requests']:,} requests, p99 {_us(late['p99'])}"


def _depth(depth: Mapping[str, Any]) -> str:
    return f"at most {depth['most']:,}, on average {_number(depth['mean'])}"


def _us(value: float | None) -> str:
    if value is None:
        return "unknown"
    divisor, unit = next((scale for scale in ((1e6, "s"), (1e3, "ms")) if abs(value) >= scale[0]), (1.0, "µs"))
    return f"{value / divisor:.3g} {unit}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f}"
