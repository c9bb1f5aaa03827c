"""Read the catalogue of host settings from the YAML files of `entries`, in the order of reports.

The entries translate the tables of the Solidigm Performance Evaluation Guide, August 2022, revision 001, sections 3.4.4
(BIOS), 3.4.5 (operating system) and 3.4.6 (power) to Linux, row by row. Each entry names its row. Rows without a
counterpart that could affect a drive are left out: restarted applications, screen, brightness, screen saver, visual
effects, desktop background, JavaScript timers, wireless and graphics power, buttons, wake timers, cooling policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from drivelab.core.errors import UserError, suggestion
from drivelab.drives.sysfs import read_text
from drivelab.host.entry import Part, Setting, Wish, in_words
from drivelab.host.readers import LISTING, ONLY_NODE, READERS, SWITCH, Reader, other_timers
from drivelab.plan.schema import validate
from drivelab.plan.yaml_file import load_yaml

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


def _is_full(part: Part) -> bool | None:
    now, _, best = part.value.partition(" of ")
    return None if "Unknown" in part.value else now == best


def _latencies(parts: Sequence[Part]) -> str:
    texts = {"0": "off (0)", "auto": "on", "any": "on, however slow"}
    return in_words([Part(part.name, texts.get(part.value, f"on, exit up to {part.value} µs")) for part in parts])


def _is_near(part: Part) -> bool | None:
    """Return False for a node without CPUs. With several nodes None, because the load's CPUs are not known yet."""
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
    "joined": lambda parts: " ".join(part.value for part in parts),
    "listed": lambda parts: ", ".join(part.value for part in parts),
    "exit_latencies": _latencies,
}


ENTRIES = Path(__file__).parent / "entries"
_CONDITIONS = ("is", "is_not", "not_beginning_with")
"""Conditions that can have `set`; the others say themselves what to set."""
_WHOLE = ("content_of", "none", "rule")
_T = TypeVar("_T")


@cache
def catalogue(folder: Path = ENTRIES) -> tuple[Setting, ...]:
    """Return the host settings of all files of a folder, in the order of the file names.

    Raises UserError with file, setting and reason for the first fault.
    """
    bodies = {
        str(path): validate(load_yaml(path), "host_settings", str(path))["settings"]
        for path in sorted(folder.glob("*.yaml"))
    }
    timers = [
        pattern
        for body in bodies.values()
        for entry in body
        if isinstance(entry["read"], dict)
        for pattern in entry["read"].get("timers", ())
    ]
    settings: dict[str, Setting] = {}
    for path, body in bodies.items():
        for entry in body:
            place = f"{path}: setting '{entry['name']}'"
            if entry["name"] in settings:
                raise UserError(f"{place}: another setting has the same name; choose another")
            settings[entry["name"]] = _setting(entry, other_timers(*timers), place)
    return tuple(settings.values())


def _setting(entry: Mapping[str, Any], others: Reader, place: str) -> Setting:
    read = entry["read"]
    plain = {**READERS, "other_timers": others}
    if isinstance(read, str):
        reader = _named(read, plain, f"{place}: reader")
    else:
        ((kind, words),) = read.items()
        reader = _named(kind, LISTING, f"{place}: reader")(*words)
    describe = entry.get("describe")
    return Setting(
        name=entry["name"],
        effect=entry["effect"],
        how=entry["how"],
        read=reader,
        real_world=_wish(entry.get("both", entry.get("real-world")), place),
        synthetic=_wish(entry.get("both", entry.get("synthetic")), place),
        laptop=_wish(entry["laptop"], place) if "laptop" in entry else None,
        per_drive=entry.get("per_drive", False),
        describe=_named(describe, DESCRIPTIONS, f"{place}: description") if describe else in_words,
        empty=entry.get("empty", "none"),
    )


def _wish(node: Any, place: str) -> Wish:
    if isinstance(node, str):
        return Wish(node, lambda part: True)
    conditions = [key for key in (*_CONDITIONS, *_WHOLE) if key in node]
    if len(conditions) > 1 or not (conditions or "set" in node) or ("set" in node and {*conditions} & {*_WHOLE}):
        raise UserError(
            f"{place}: {node} needs one of {', '.join((*_CONDITIONS, *_WHOLE))}, or set; only {', '.join(_CONDITIONS)} "
            "can have set as well"
        )
    target = node.get("set")
    values = node.get("is", [] if target is None else [target])
    words = node.get("words") or ("" if {*conditions} - {"is"} else " or ".join(values))
    if not words:
        raise UserError(f"{place}: {node} needs 'words' that say what is wanted")
    match node:
        case {"rule": name}:
            accepts, chosen = _named(name, RULES, f"{place}: rule")
            return Wish(words, accepts, chosen)
        case {"content_of": name}:
            return Wish(words, lambda part: part.value == part.sibling(name), lambda part: part.sibling(name) or None)
        case {"none": True}:
            return Wish(words, lambda part: False)
        case {"is_not": unwanted}:
            return Wish(words, lambda part: part.value not in unwanted, lambda part: target)
        case {"not_beginning_with": unwanted}:
            return Wish(words, lambda part: not part.value.startswith(tuple(unwanted)), lambda part: target)
        case _:
            return Wish(words, lambda part: part.value in values, lambda part: target)


def _named(name: str, known: Mapping[str, _T], what: str) -> _T:
    if name not in known:
        raise UserError(f"{what} '{name}' is unknown; {suggestion(name, known)}")
    return known[name]
