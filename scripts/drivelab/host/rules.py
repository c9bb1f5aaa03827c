"""Rules and descriptions of host settings that a list of values cannot express. The catalogue names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from drivelab.drives.sysfs import read_text
from drivelab.host.drive_readers import ONLY_NODE
from drivelab.host.entry import Part, Wish, in_words
from drivelab.host.readers import SWITCH

_OWN_GOVERNORS = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose governor `powersave` is balanced; with other drivers it means the lowest frequency."""
_SHALLOW_US = 2
"""Exit latency of C1, which stays enabled if the BIOS turns C-states off; deeper states take 10 µs and more."""


def _balanced_governor(part: Part) -> str | None:
    if part.sibling("scaling_driver") in _OWN_GOVERNORS:
        return "powersave"
    offered = part.sibling("scaling_available_governors").split()
    return next((name for name in ("schedutil", "ondemand", "conservative") if name in offered), None)


def _is_balanced(part: Part) -> bool:
    if part.value == "powersave":
        return part.sibling("scaling_driver") in _OWN_GOVERNORS
    return part.value not in ("performance", "userspace")


def _boosts(part: Part) -> str:
    return "0" if part.name.endswith("no_turbo") else "1"


def _turbo_in_words(parts: Sequence[Part]) -> str:
    return in_words([Part(part.name, "enabled" if part.value == _boosts(part) else "disabled") for part in parts])


def _exit_us(part: Part) -> int:
    latency = part.sibling("latency")
    return int(latency) if latency.isdecimal() else 0


def _idle_states(parts: Sequence[Part]) -> str:
    enabled = {(_exit_us(part), part.sibling("name")) for part in parts if part.value == "0"}
    if not enabled:
        return "all disabled"
    return f"{', '.join(name for _, name in sorted(enabled))} (exit up to {max(enabled)[0]} µs)"


def _mitigations(parts: Sequence[Part]) -> str:
    if switches := [part.value for part in parts if part.name == SWITCH]:
        return f"turned off by {' '.join(switches)}"
    unmitigated = [part.name.rpartition("/")[2] for part in parts if part.value.startswith("Vulnerable")]
    return "in force" + (f"; vulnerable to {', '.join(unmitigated)}" if unmitigated else "")


def _mitigated(part: Part) -> bool:
    return part.name != SWITCH


def _join(parts: Sequence[Part]) -> str:
    return " ".join(part.value for part in parts)


def _is_full(part: Part) -> bool | None:
    now, _, best = part.value.partition(" of ")
    return None if "Unknown" in part.value else now == best


def _names(parts: Sequence[Part]) -> str:
    return ", ".join(part.value for part in parts)


def _latencies(parts: Sequence[Part]) -> str:
    texts = {"0": "off (0)", "auto": "on", "any": "on, however slow"}
    return in_words([Part(part.name, texts.get(part.value, f"on, exit up to {part.value} µs")) for part in parts])


def _is_near(part: Part) -> bool | None:
    """Return False for a node without CPUs.

    With several nodes None, because the load's CPUs are not known yet.
    """
    if part.value == ONLY_NODE:
        return True
    return False if read_text(Path(part.name)) == "" else None


RULES: Mapping[str, tuple[Callable[[Part], bool | None], Callable[[Part], str | None]]] = {
    "balanced_governor": (_is_balanced, _balanced_governor),
    "turbo": (lambda part: part.value == _boosts(part), _boosts),
    "all_idle_states": (
        lambda part: part.value == "0" or part.sibling("default_status") == "disabled",
        lambda part: "0",
    ),
    "shallow_idle_states": (lambda part: part.value != "0" or _exit_us(part) <= _SHALLOW_US, lambda part: "1"),
    "mitigated": (lambda part: part.name != SWITCH, Wish.target),
    "full_link": (_is_full, Wish.target),
    "near_node": (_is_near, Wish.target),
}
"""Whether a part has the wanted state, and the value to write, as in `Wish`."""
DESCRIPTIONS: Mapping[str, Callable[[Sequence[Part]], str]] = {
    "turbo": _turbo_in_words,
    "idle_states": _idle_states,
    "mitigations": _mitigations,
    "joined": _join,
    "listed": _names,
    "exit_latencies": _latencies,
}
