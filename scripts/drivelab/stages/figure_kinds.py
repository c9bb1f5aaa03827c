"""Which kinds of figures a plan leads to, told by its steps, and what draws them; without importing that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.config.code_digest import code_digest
from drivelab.figures.registry import ALL, FIGURES
from drivelab.virtual.effects import TELLING

Fields = Mapping[str, Any]
"""What a step of a plan says: of a loop its cells and when it ends."""

REPLAY_TABLES = (
    "replays",
    "replay_operations",
    "replay_streams",
    "replay_latency",
    "replay_issue_errors",
    "replay_over_time",
    "replay_mappings",
    "replay_passes",
)
"""Tables of the replays of each recording; empty for one that replays nothing. Named here, as a plan must not wait for
their schemas."""

_CONDITIONS = (
    "steady", "grid", "surface", "repeats", "reads", "maximum", "maximum_surface", "demand", "demand_cpu", "pre_writes",
    "idle_recovery", "soak", "volume", "histogram", "nines", "stimulus", "turns", "replay", "phases", "mixes",
    "shifted", "sliced", "telemetry", "application", "comparison", "drives_capacity", "drives_latency", "drives_ramp",
    "drives_mixes", "drives_alignment", "drives_strip", "drives_application", "head_to_head", "sizes", "trace",
)  # fmt: skip
"""What a figure may be declared for (`FigureKind.when`): plans, several drives, sizes, and traces that have it."""
FIGURES_OF = {
    condition: tuple(name for name, kind in ALL.items() if condition in kind.when) for condition in _CONDITIONS
}
"""Figures of each condition, in the order of their places."""
TABLES_OF = {
    condition: tuple(dict.fromkeys(table for name in names for table in (*ALL[name].required, ALL[name].values)))
    for condition, names in FIGURES_OF.items()
}
"""Tables that the figures of a condition are drawn from; `drives` is of the study, the others are of the recording."""
OVER_DRIVES = tuple(kind for kind in FIGURES_OF if kind in ("comparison", "head_to_head") or kind.startswith("drives_"))
"""Kinds whose figures are drawn from the recordings of one measurement on several drives."""
OVER_SIZES = ("sizes",)
"""Kinds whose figures are drawn from measurements that differ in their block size, of all drives."""
OF_A_RECORDING = tuple(kind for kind in FIGURES_OF if kind not in (*OVER_DRIVES, *OVER_SIZES, "trace"))
"""Kinds whose figures are drawn from one recording alone."""

_TELLS = {"pattern", "read_share", "block_size_bytes"}
"""What the cells of a grid may differ in, and what stands in its tables."""
_BESIDES = {"block_sizes", "block_size_max_bytes", "beside", "zones", "zipf"}
_FEWEST_ON_AXIS = 3


def figure_code(kinds: Iterable[str]) -> dict[str, str]:
    """Digest of the code that draws each figure of these kinds: a change of others must not draw it anew."""
    return {
        name: code_digest("figures.py", f"figures.{FIGURES[name].module}")
        if name in FIGURES
        else code_digest("trace_figures.py", f"figures.{ALL[name].module}")  # a trace has its own registry
        for kind in kinds
        for name in FIGURES_OF[kind]
    }


def figure_kinds(subject: Mapping[str, Any]) -> set[str]:
    """Keys of FIGURES_OF that the figures of one recording have; `subject` is that of its plan.

    A soak in a phase is none of its own: it puts the drive in a state for what comes after it, or is one of several
    turns that are compared with each other.
    """
    steps: dict[str, list[Fields]] = {}
    for step in subject["measure"]:
        for kind, fields in step.items():
            steps.setdefault(kind, []).append(fields)
    loops, soaks, replays = (steps.get(kind, []) for kind in ("loop", "soak", "replay"))
    found = _of_loops(loops) | _of_soaks([one for one in soaks if "phase" not in one], len(soaks), bool(loops))
    if replays:
        found.add("replay")
    if "application" in steps:
        found.add("application")
    if (loops or soaks) and (subject.get("clock") == "wall" or TELLING & _virtual_model(subject).keys()):
        found.add("telemetry")  # of the host, and of a drive that tells its temperature
    if "demand" in found and subject.get("clock") == "wall":
        found.add("demand_cpu")  # on the virtual clock no CPU works for the I/Os
    if any("phase" in one for one in replays):
        found.add("phases")
    elif "idle_recovery" not in found and any("phase_value" in one for one in soaks):
        found.add("turns")
    return found


def _virtual_model(subject: Mapping[str, Any]) -> Mapping[str, Any]:
    return subject.get("drive", {}).get("virtual") or {}


def _of_loops(loops: Sequence[Fields]) -> set[str]:
    found: set[str] = set()
    bursts = [one for one in loops if "pause_s" in one and "phase" in one]
    if bursts:
        found.add("idle_recovery")
    others = [one for one in loops if one not in bursts]
    steady = [one for one in others if "track" in one["until"]]
    if steady:
        found.add("steady")
    found |= {kind for one in others for kind in _of_series(one)}
    for one in others:
        if _demands(one):
            found |= {"demand", "pre_writes"} if one in steady and _has_beside(one) else {"demand"}
        elif one in steady and len(others) == 1 and (axes := _grid(one)):
            found |= {"grid", "surface"} if min(axes) > 1 else {"grid"}
            found |= _of_tracked(one, min(axes) > 1)
        elif one not in steady or "streams" in one or len(one["cells"]) > 1:
            found.add("repeats")
    return found


def _of_tracked(loop: Fields, surface: bool) -> set[str]:
    """What the PTS shows beside the writes and the tracked metric: of throughput the reads, of latency its maximum."""
    metrics = {one["metric"] for one in loop["until"]["track"]}
    shares = {cell["read_share"] for cell in loop["cells"]}
    found = {"reads"} if shares == {0, 100} or ("bandwidth_mib_s" in metrics and 100 in shares) else set()
    if "mean_latency_us" in metrics:
        found |= {"maximum", "maximum_surface"} if surface else {"maximum"}
    return found


def _of_series(loop: Fields) -> set[str]:
    """Series of cells that are alike but for one thing: mixes from writes alone to reads alone, and alignment."""
    found = set()
    for key, kind in (("read_share", "mixes"), ("alignment_offset_bytes", "shifted")):
        alike: dict[str, set[int]] = {}
        for cell in loop.get("cells", []):
            load = repr(sorted((one, cell[one]) for one in cell.keys() - {key, "runtime_s"}))
            alike.setdefault(load, set()).add(cell.get(key, 0))
        ends = {0, 100} if kind == "mixes" else {0}
        if any(values > ends for values in alike.values()):
            found.add(kind)
    return found


def _has_beside(loop: Fields) -> bool:
    """Whether a sweep measures something else at one demand, as the writes before each round of the PTS."""
    if "streams" in loop:
        return False
    loads = [_load(cell) for cell in loop["cells"]]
    return any(loads.count(load) == 1 for load in loads)


def _demands(loop: Fields) -> bool:
    """Whether it is a sweep: its workloads are measured at several numbers of threads or depths, and not just at two.

    One cell may be something else, as the writes before each round of the PTS.
    """
    if "streams" in loop:
        return len(loop["streams"]["threads"]) * len(loop["streams"]["queue_depth"]) > 1
    loads: dict[str, set[tuple[Any, Any]]] = {}
    for cell in loop["cells"]:
        loads.setdefault(_load(cell), set()).add((cell.get("threads"), cell.get("queue_depth")))
    swept = sum(len(demands) for demands in loads.values() if len(demands) >= _FEWEST_ON_AXIS)
    return swept > 0 and len(loop["cells"]) - swept <= 1


def _load(cell: Fields) -> str:
    """What tells the workload of a cell, whatever the demand."""
    return repr(sorted((key, cell[key]) for key in cell.keys() - {"threads", "queue_depth", "runtime_s"}))


def _grid(loop: Fields) -> tuple[int, int] | None:
    """Number of block sizes and of read shares if the cells are all combinations of them; None if they are not."""
    cells = loop.get("cells", [])
    keys = {key for cell in cells for key in cell}
    varied = {key for key in keys if len({repr(cell.get(key)) for cell in cells}) > 1}
    if not cells or varied - _TELLS or keys & _BESIDES:
        return None
    patterns, shares, sizes = ({cell[key] for cell in cells} for key in ("pattern", "read_share", "block_size_bytes"))
    axes = len(sizes), len(shares)
    whole = len(cells) == len(patterns) * len(sizes) * len(shares)
    pure = shares == {0, 100}  # reads beside writes, as in a throughput test: two bars
    return axes if whole and (min(axes) > 1 or max(axes) >= _FEWEST_ON_AXIS or (pure and len(sizes) == 1)) else None


def _of_soaks(soaks: Sequence[Fields], all_soaks: int, after_loop: bool) -> set[str]:
    """`soaks` are those that are not in a phase, `all_soaks` counts those that are too."""
    if not soaks:
        return set()
    loads = [{key: value for key, value in one["cell"].items() if key != "slice_s"} for one in soaks]
    if any(load != loads[0] for load in loads):
        return {"stimulus"}
    writes = loads[0]["read_share"] < 100 or loads[0].get("beside", {}).get("read_share", 100) < 100
    found = {"soak", "volume"} if writes else {"soak"}
    if len(soaks) < all_soaks:  # they prepare for the phases
        return found
    return found | {"sliced"} | ({"histogram"} if writes or after_loop else {"nines"})
