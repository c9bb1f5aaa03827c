"""The figures of a recording, by the steps of its plan, without importing the code that draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.figures.registry import ALL
from drivelab.plan.cell import beside_of
from drivelab.virtual.effects import TELLING

Fields = Mapping[str, Any]
"""Fields of a step of a plan, such as cells and end of a loop."""

_CONDITIONS = (
    "steady", "one_mix", "by_mix", "history", "grid", "repeats", "maximum", "demand", "pre_writes", "idle_recovery",
    "soak", "volume", "histogram", "nines", "stimulus", "turns", "replay", "phases", "mixes", "sliced",
    "telemetry", "application", "comparison", "drives_latency", "drives_ramp", "drives_mixes", "drives_strip",
    "drives_application", "drives_grid", "drives_volume", "head_to_head", "sizes", "trace", "states", "cache", "quick",
    "zones", "drives_zones", "load", "drives_load", "surface", "maximum_surface",
)  # fmt: skip
"""Conditions for which a figure can be declared (`FigureKind.when`): plans, several drives, sizes, and traces."""
FIGURES_OF = {
    condition: tuple(name for name, kind in ALL.items() if condition in kind.when) for condition in _CONDITIONS
}
"""Figures of each condition, in the order of `FigureKind.place`."""
OVER_DRIVES = tuple(kind for kind in FIGURES_OF if kind in ("comparison", "head_to_head") or kind.startswith("drives_"))
"""Kinds with figures of one measurement on several drives."""
OVER_SIZES = ("sizes",)
"""Kinds with figures of measurements that differ in block size, on all drives."""
OF_A_RECORDING = tuple(kind for kind in FIGURES_OF if kind not in (*OVER_DRIVES, *OVER_SIZES, "trace"))
"""Kinds with figures of a single recording."""

_TELLS = {"pattern", "read_share", "block_size_bytes"}
"""Fields in which the cells of a grid may differ."""
_BESIDES = {"block_sizes", "block_size_max_bytes", "beside", "zones", "zipf"}
_FEWEST_ON_AXIS = 3
_FEWEST_OF_HISTORY = 10
"""Fewest rounds of a loop without a window that are drawn one by one."""


def figures_of_recording(subject: Mapping[str, Any]) -> list[str]:
    """Return the figures of one recording, in the order of its page; `subject` is the subject of its plan."""
    kinds = figure_kinds(subject)
    return figures_of(kind for kind in OF_A_RECORDING if kind in kinds)


def figures_of(kinds: Iterable[str]) -> list[str]:
    """Return the figures of some keys of FIGURES_OF, each once."""
    return list(dict.fromkeys(name for kind in kinds for name in FIGURES_OF[kind]))


def figure_kinds(subject: Mapping[str, Any]) -> set[str]:
    """Return the keys of FIGURES_OF for one recording; `subject` is the subject of its plan.

    A soak in a phase has no figures of a soak: it prepares the drive, or is one of several turns that are compared.
    """
    steps: dict[str, list[Fields]] = {}
    for step in subject["measure"]:
        for kind, fields in step.items():
            steps.setdefault(kind, []).append(fields)
    loops, soaks, replays = (steps.get(kind, []) for kind in ("loop", "soak", "replay"))
    kinds = {"quick"} if subject.get("protocol") in ("quick", "quick-reads") else set()
    kinds |= _of_loops(loops)
    kinds |= _of_soaks([soak for soak in soaks if "phase" not in soak], len(soaks), bool(loops))
    if "steady" in kinds:
        kinds.discard("volume")  # the soak shows latencies of a drive that has settled
        kinds |= set() if "by_mix" in kinds else {"one_mix"}
    if replays:
        kinds.add("replay")
    kinds |= {"application", "load"} & steps.keys()
    virtual = subject.get("drive", {}).get("virtual") or {}
    if (loops or soaks) and (subject.get("clock") == "wall" or TELLING & virtual.keys()):
        kinds.add("telemetry")  # of the host, and of a drive that reports its temperature
    if any("phase" in step for step in replays):
        kinds.add("phases")
    elif "idle_recovery" not in kinds and any("phase_value" in soak for soak in soaks):
        waits = any("phase_value" in idle for idle in steps.get("idle", []))
        only_write = all(soak["cell"]["read_share"] == 0 for soak in soaks)
        kinds.add("cache" if waits and not loops and only_write else "turns")
    return kinds


def _of_loops(loops: Sequence[Fields]) -> set[str]:
    kinds: set[str] = set()
    bursts = [loop for loop in loops if "pause_s" in loop and "phase" in loop]
    if bursts:
        kinds.add("idle_recovery")
    others = [loop for loop in loops if loop not in bursts]
    steady = [loop for loop in others if "track" in loop["until"]]
    if steady:
        kinds.add("steady")
    kinds |= {kind for loop in others for kind in _of_series(loop) if "phase" not in loop}
    if len({loop.get("phase") for loop in others} - {None}) > 1 and all("phase_value" not in loop for loop in others):
        kinds.add("states")
    for loop in others:
        if _demands(loop):
            loads = [_load(cell) for cell in loop.get("cells", [])]
            beside = any(loads.count(load) == 1 for load in loads)  # such as the PTS's writes before each round
            kinds |= {"demand", "pre_writes"} if loop in steady and beside else {"demand"}
        elif loop in steady and len(others) == 1 and _is_grid(loop):
            kinds |= {"grid", *_of_tracked(loop)}
            if all(len({cell[key] for cell in loop["cells"]}) > 1 for key in ("read_share", "block_size_bytes")):
                kinds |= {"surface", "maximum_surface"} if "maximum" in kinds else {"surface"}
        elif loop not in steady or "streams" in loop or len(loop["cells"]) > 1:
            kinds.add("repeats")
            if len(loops) == 1 and loop["until"].get("rounds", 0) >= _FEWEST_OF_HISTORY and "streams" not in loop:
                kinds.add("history")
    return kinds


def _of_tracked(loop: Fields) -> set[str]:
    """Return the additional figures of the PTS: reads for throughput, maximum for latency."""
    metrics = {variable["metric"] for variable in loop["until"]["track"]}
    shares = {cell["read_share"] for cell in loop["cells"]}
    both = shares == {0, 100} or ("bandwidth_mib_s" in metrics and 100 in shares)
    kinds = {"by_mix"} if both or ("mean_latency_us" in metrics and len(shares) > 1) else set()
    return kinds | ({"maximum"} if "mean_latency_us" in metrics else set())


def _of_series(loop: Fields) -> set[str]:
    """Return the kinds for cells that differ in one field only: the mix or the position."""
    kinds = set()
    for key, kind, ends in (("read_share", "mixes", {0, 100}), ("range_start", "zones", {0})):
        alike: dict[str, set[float]] = {}
        for cell in loop.get("cells", []):
            load = repr(sorted((field, cell[field]) for field in cell.keys() - {key, "runtime_s"}))
            alike.setdefault(load, set()).add(cell.get(key, 0))
        if any(len(values) >= _FEWEST_ON_AXIS and values >= ends for values in alike.values()):
            kinds.add(kind)
    return kinds


def _demands(loop: Fields) -> bool:
    """Return whether a loop is a sweep: its workloads have more than two numbers of threads or depths.

    One cell may differ, such as the PTS's writes before each round.
    """
    if "streams" in loop:
        return len(loop["streams"]["threads"]) * len(loop["streams"]["queue_depth"]) > 1
    loads: dict[str, set[tuple[Any, Any]]] = {}
    for cell in loop["cells"]:
        loads.setdefault(_load(cell), set()).add((cell.get("threads"), cell.get("queue_depth")))
    swept = sum(len(demands) for demands in loads.values() if len(demands) >= _FEWEST_ON_AXIS)
    return swept > 0 and len(loop["cells"]) - swept <= 1


def _load(cell: Fields) -> str:
    """Return a key of a cell's workload without its demand."""
    return repr(sorted((key, cell[key]) for key in cell.keys() - {"threads", "queue_depth", "runtime_s"}))


def _is_grid(loop: Fields) -> bool:
    """Return whether the cells are all combinations of several block sizes and read shares."""
    cells = loop.get("cells", [])
    keys = {key for cell in cells for key in cell}
    varied = {key for key in keys if len({repr(cell.get(key)) for cell in cells}) > 1}
    if not cells or varied - _TELLS or keys & _BESIDES:
        return False
    patterns, shares, sizes = ({cell[key] for cell in cells} for key in ("pattern", "read_share", "block_size_bytes"))
    axes = len(sizes), len(shares)
    whole = len(cells) == len(patterns) * len(sizes) * len(shares)
    pure = shares == {0, 100}  # two bars, as in a throughput test
    return whole and (min(axes) > 1 or max(axes) >= _FEWEST_ON_AXIS or (pure and len(sizes) == 1))


def _of_soaks(soaks: Sequence[Fields], all_soaks: int, after_loop: bool) -> set[str]:
    """Return the kinds for the `soaks` outside of phases; `all_soaks` is the number of all soaks."""
    if not soaks:
        return set()
    loads = [{key: value for key, value in soak["cell"].items() if key != "slice_s"} for soak in soaks]
    if any(load != loads[0] for load in loads):
        return {"stimulus"}
    writes = any(load["read_share"] < 100 for load in (loads[0], *beside_of(loads[0])))
    if len(soaks) < all_soaks:  # they prepare for the phases
        return {"soak"}
    kinds = {"soak", "volume"} if writes else {"soak"}
    return kinds | {"sliced"} | ({"histogram"} if writes or after_loop else {"nines"})
