"""Parse hdparm -I for ATA drives: identity, security, sanitize and TRIM (ATA Command Set 3, IDENTIFY DEVICE)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from drivelab.drives import tools

_ERASE_TIME = re.compile(r"(more than )?(\d+)min for (ENHANCED )?SECURITY ERASE UNIT")


@dataclass(frozen=True)
class Security:
    """The security feature set. A frozen drive refuses all changes, erase included, until its next power cycle."""

    supported: bool
    enabled: bool
    """A password is set."""
    locked: bool
    frozen: bool
    enhanced_supported: bool
    erase_min: int | None
    """The drive's estimate of the time for a normal erase, minutes (508: or more); None if the drive gives none."""
    enhanced_erase_min: int | None


@dataclass(frozen=True)
class Ata:
    """An ATA drive."""

    model: str | None
    serial: str | None
    firmware: str | None
    security: Security
    trim: bool
    after_trim: str | None
    """Content of trimmed blocks: `zeros`, `data` (any, but always the same), None if the drive promises nothing."""
    write_cache_supported: bool


def identify(device: str) -> Ata | None:
    """Return the ATA drive at a device path, or None if it is not ATA; raises UserError if hdparm is missing."""
    return parse_identify(tools.run("hdparm", "-I", device).stdout)


def parse_identify(text: str) -> Ata | None:
    """Parse the output of `hdparm -I`; None if the output has no model number.

    hdparm prints "ATA device" even when a SCSI drive has answered with nothing. Only the model number proves ATA.
    """
    lines = text.splitlines()
    if _value(lines, "Model Number") is None:
        return None
    features = _features(lines)
    return Ata(
        model=_value(lines, "Model Number"),
        serial=_value(lines, "Serial Number"),
        firmware=_value(lines, "Firmware Revision"),
        security=_security(lines),
        trim=any(feature.startswith("Data Set Management TRIM supported") for feature in features),
        after_trim=_after_trim(features),
        write_cache_supported="Write cache" in features,
    )


def _value(lines: list[str], key: str) -> str | None:
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip() or None
    return None


def _features(lines: list[str]) -> dict[str, bool]:
    """Return the supported features, and whether each is enabled (hdparm marks those with an asterisk)."""
    features: dict[str, bool] = {}
    for line in _section(lines, "Commands/features"):
        mark, tab, feature = line.removeprefix("\t").partition("\t")
        if tab and mark.strip() in ("", "*"):
            features[feature.strip()] = mark.strip() == "*"
    return features


def _section(lines: list[str], heading: str) -> list[str]:
    """Return the indented lines below an unindented heading."""
    section: list[str] = []
    inside = False
    for line in lines:
        if line and not line[0].isspace():
            inside = line.strip().rstrip(":") == heading
        elif inside:
            section.append(line)
    return section


def _security(lines: list[str]) -> Security:
    section = _section(lines, "Security")
    flags = {line.strip() for line in section}
    minutes: dict[bool, int] = {}
    for line in section:
        for _, number, enhanced in _ERASE_TIME.findall(line):
            minutes[bool(enhanced)] = int(number)
    return Security(
        supported="supported" in flags,
        enabled="enabled" in flags,
        locked="locked" in flags,
        frozen="frozen" in flags,
        enhanced_supported="supported: enhanced erase" in flags,
        erase_min=minutes.get(False),
        enhanced_erase_min=minutes.get(True),
    )


def _after_trim(features: dict[str, bool]) -> str | None:
    if features.get("Deterministic read ZEROs after TRIM"):
        return "zeros"
    return "data" if features.get("Deterministic read data after TRIM") else None
