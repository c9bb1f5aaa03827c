"""`drivelab replay`: replay a trace once on a drive, a loop device or a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.cli.completion import completed_by, drives, traces
from drivelab.core.errors import UserError
from drivelab.core.terminal import say
from drivelab.core.units import format_amount, parse_duration, parse_size

if TYPE_CHECKING:
    from drivelab.plan.replay_choice import ReplayChoice
    from drivelab.replay.native import EngineOptions


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
    words = "drive of the drive sheet, or path of a loop device or file that you own"
    completed_by(parser.add_argument("--target", required=True, help=words), drives)
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
    when.add_argument("--dependencies", choices=("none", "trace"), default="none",
                      help="trace: a request waits for the last that completed before it in the trace")  # fmt: skip
    where = parser.add_argument_group("where they go")
    mappings = ("auto", "exact", "modulo", "scale", "compact")
    where.add_argument(
        "--mapping", choices=mappings, default="auto", help="auto: exact if all offsets fit, else modulo"
    )
    where.add_argument("--range-start", metavar="SIZE", help="start of the active range, such as 1GiB")
    where.add_argument("--range", metavar="SIZE", help="length of the active range (default: to the end of the target)")
    how = parser.add_argument_group("how they are issued")
    how.add_argument("--prefill", action="store_true", help="first write everything that the trace reads")
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
    parser.set_defaults(handler=_replay)


def _replay(options: argparse.Namespace) -> int:
    from drivelab.host.temporary import recover_all
    from drivelab.run.replays import single_replay
    from drivelab.trace import trace_catalogue

    trace = trace_catalogue.locate(options.trace)
    say(*recover_all(), stderr=True)
    report = single_replay.replay(
        trace,
        options.target,
        options.output,
        _choice(options),
        _engine_options(options),
        sheet=options.drives,
        prefill=options.prefill,
        destroy=options.yes,
    )
    print(json.dumps(report, indent=1) if options.json else "\n".join(lines(report, options.output)))
    if report["state"] == "interrupted":
        return 130
    return 1 if report["partial"] or report["failed_requests"] else 0


def _choice(options: argparse.Namespace) -> ReplayChoice:
    from drivelab.plan.replay_choice import MappingChoice, ReplayChoice, TimingChoice

    cap_s = None if options.idle_cap is None else parse_duration(options.idle_cap)
    range_bytes = None if options.range is None else parse_size(options.range)
    start_bytes = 0 if options.range_start is None else parse_size(options.range_start)
    return ReplayChoice(
        TimingChoice(options.timing, factor=options.factor, idle_cap_s=cap_s, depth=options.depth),
        MappingChoice(options.mapping, range_start_bytes=start_bytes, range_bytes=range_bytes),
        options.dependencies,
    )


def _engine_options(options: argparse.Namespace) -> EngineOptions:
    from drivelab.plan.replay_choice import MOST_IN_FLIGHT
    from drivelab.replay.native import EngineOptions

    return EngineOptions(
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
    yield from _results(report)
    yield f"requests: {output}"


def _mark(mark: str) -> str:
    return f"{mark.partition(':')[0].upper()}:{mark.partition(':')[2]}" if ":" in mark else mark


def _host(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about how the whole replay was issued."""
    if report["issued_by"] not in (None, "1 thread"):
        yield f"issued by {report['issued_by']}"
    if wakeup := report["host"]["wakeup_us"]:
        yield f"wake-up delay of this host: {_spread(wakeup)}"


def _results(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the results of a replay."""
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


def _spread(spread: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {_us(value)}" for name, value in spread.items() if value is not None)


def _fidelity(report: Mapping[str, Any]) -> str:
    ratio = report["duration_ratio"]
    text = "duration ratio unknown" if ratio is None else f"duration ratio {ratio:.4f} ({report['duration_basis']})"
    inversions = report["order_inversions"]
    order = "unknown" if inversions is None else f"{inversions:,}"
    return f"{text}; out of order: {order}; mapping {report['mapping']['method']}"


def _times(report: Mapping[str, Any]) -> Iterator[str]:
    if errors := report["issue_error_us"]:
        known = [name for name in ("p50", "p95", "p99", "max") if errors[name] is not None]
        percentiles = ", ".join(f"{name} {_us(errors[name])}" for name in known)
        yield f"issue error: {percentiles}; within 50 µs {errors['within_50us_pct']:.2f} %"
    for cause, late in (report["lateness_by"] or {}).items():
        if cause != "host" and late["requests"]:
            yield f"late, {_DELAYS[cause]}: {late['requests']:,} requests, p99 {_us(late['p99'])}"


def _depth(depth: Mapping[str, Any]) -> str:
    return f"at most {depth['most']:,}, on average {_number(depth['mean'])}"


def _us(value: float | None) -> str:
    from drivelab.plan.loops import time_words

    return "unknown" if value is None else time_words(value)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f}"
