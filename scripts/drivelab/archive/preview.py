"""Render the metadata of an archive as one HTML page (RO-Crate 1.1, RO-Crate Website)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.licenses import canonicalize_license_expression

import drivelab.report
from drivelab.archive.contents import ELSEWHERE
from drivelab.core.errors import UserError
from drivelab.report.numbers import amount, duration, moment, quantity, size

_REPORT_STYLE = Path(drivelab.report.__file__).parent / "templates/report.css"
_OWN_STYLE = """
header, main, footer { margin: 0 auto !important; }
header p { max-width: 60rem; }
td:first-child { width: 22rem; min-width: 9rem; overflow-wrap: anywhere; }
h3 code { font-size: 1em; }
td[data-head="Size"] { width: 8rem; text-align: right; }
thead th:nth-child(3):last-child { text-align: right; }
.exact { white-space: nowrap; }
.groups h3 { text-transform: none; letter-spacing: 0; font-size: .95rem; color: var(--ink); }
@media screen and (max-width: 40rem) {
  body { padding-bottom: 0; }
  thead { display: none; }
  tr, td { display: block; }
  tr { padding: .4rem 0; border-bottom: 1px solid var(--line); }
  td, td:first-child { width: auto; padding: .05rem 0; border: 0; text-align: left !important; }
  td:empty { display: none; }
  td[data-head]::before { content: attr(data-head) " "; color: var(--quiet); }
}
"""
"""In addition to the report's style: no table of contents, and on a phone one cell per line."""
_LABELS = {
    "firmware": "Firmware", "capacity_bytes": "Capacity", "logical_block_bytes": "Logical block",
    "lba_format": "LBA format", "transport": "Transport", "link": "Link", "over_provisioning_pct": "Over-provisioning",
    "write_cache": "Write cache", "virtual": "Virtual drive", "file_system": "File system", "mkfs": "mkfs",
    "mount_options": "Mount options", "cpu": "CPU", "cores": "Cores", "memory_bytes": "Memory",
    "os": "Operating system", "base_clock_mhz": "Base clock, MHz", "max_clock_mhz": "Maximum clock, MHz",
    "package_power_limit_w": "Package power limit, W", "memory_modules": "Memory modules", "board": "Board",
    "system": "System", "bios": "BIOS", "controller": "Controller", "manufacturer": "Manufacturer", "note": "Note",
}  # fmt: skip
Entity = Mapping[str, Any]


def preview(text: str, first: Sequence[str] = ()) -> str:
    """Return the page for the text of the metadata, which it embeds; `first` lists the files to read first."""
    graph: dict[str, Entity] = {entity["@id"]: entity for entity in json.loads(text)["@graph"]}
    root = graph["./"]
    authors = ", ".join(graph[author["@id"]]["name"] for author in _listed(root.get("author")))
    cite = f"{authors}{' ' if authors else ''}({root['datePublished'][:4]}). {root['name']} [data set]."
    licence = escape(root["license"]) if isinstance(root["license"], str) else _link(graph[root["license"]["@id"]])
    by_type = {kind: [entity for entity in graph.values() if entity["@type"] == kind] for kind in
               ("IndividualProduct", "SoftwareApplication")}  # fmt: skip
    programs = ((_anchor(program), escape(program["softwareVersion"])) for program in by_type["SoftwareApplication"])
    actions = [_action(graph, graph[action["@id"]]) for action in _listed(root["mentions"])]
    sections = {
        "Contents": "\n".join(_files(graph, root, first)),
        "Measurements": _table(("Recording", "Begun", "Duration", "By", "On"), actions),
        "Drives and hosts": _cards(_thing(graph, product) for product in by_type["IndividualProduct"]),
        "Programs": _table(("Name", "Version"), programs),
    }
    body = "\n".join(f"<section><h2>{head}</h2>\n{content}\n</section>" for head, content in sections.items())
    data = text.replace("</", "<\\/")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(root['name'])}</title>\n"
        f"<style>{_REPORT_STYLE.read_text(encoding='utf-8')}{_OWN_STYLE}</style>\n"
        f'<script type="application/ld+json">\n{data}</script></head>\n<body>\n'
        f"<header><h1>{escape(root['name'])}</h1>\n<p>{escape(root['description'])}.</p>\n"
        f"<p>Cite as: {escape(cite)} Published {escape(root['datePublished'])}. Licence: {licence}</p></header>\n"
        f"<main>\n{body}\n</main>\n</body></html>\n"
    )


def _files(graph: Mapping[str, Entity], root: Entity, first: Sequence[str]) -> Iterator[str]:
    """Yield tables of the root's parts by folder, without locks and recordings, which have another table."""
    made = {entity["result"]["@id"] for entity in graph.values() if entity["@type"] == "CreateAction"}
    places = {unquote(key): entity for key, entity in graph.items() if entity["@type"] in ("File", "Dataset")}
    yield _table(("Read first", "What it is", "Size"), (_file(places[name], name) for name in first if name in places))
    groups: dict[str, list[str]] = {}
    for part in _listed(root["hasPart"]):
        name = unquote(part["@id"])
        is_listed = part["@id"] in made or any(
            file.startswith(name) for file in first
        )  # the file itself, or its folder
        if not is_listed and not name.endswith(".lock"):
            groups.setdefault(name.rstrip("/").rpartition("/")[0], []).append(name)
    for folder in sorted(groups, key=lambda name: (name.startswith((".", ELSEWHERE)), name)):
        yield f"<h3><code>{escape(folder)}/</code></h3>"
        rows = (_file(places[name], name.removeprefix(f"{folder}/")) for name in groups[folder])
        yield _table(("Name", "What it is", "Size"), rows)


def _file(entity: Entity, name: str) -> tuple[str, ...]:
    link = f'<a href="{escape(entity["@id"])}">{escape(name)}</a>'
    size_bytes = entity.get("contentSize")
    shown_size = "" if size_bytes is None else _exact(amount(int(size_bytes)), f"{int(size_bytes):,} bytes")
    pages = [part["@id"] for part in _listed(entity.get("hasPart")) if part["@id"].endswith("/index.html")]
    report = f'; <a href="{escape(pages[0])}">its report</a>' if pages else ""
    return link, escape(entity["description"]) + report, shown_size


def _action(graph: Mapping[str, Entity], action: Entity) -> tuple[str, ...]:
    result = graph[action["result"]["@id"]]
    fault = f'<small class="bad">not finished: {escape(action["error"])}</small>' if "error" in action else ""
    things = [graph[item["@id"]] for item in _listed(action["object"])]
    summary = action["description"].partition(". ")[0]  # the rest is the same for all
    begun, ended = action.get("startTime"), action.get("endTime")
    lasted = (
        (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds() if begun and ended else None
    )
    return (
        f"{_link(result)}<small>{escape(summary)}</small>{fault}",
        _exact(moment(begun), str(begun)),
        _exact(duration(lasted), f"until {ended}"),
        ", ".join(_to(graph[program["@id"]]) for program in _listed(action["instrument"])),
        ", ".join(_to(thing) for thing in things if thing["@type"] == "IndividualProduct"),
    )


def _thing(graph: Mapping[str, Entity], thing: Entity) -> str:
    values = {
        graph[item["@id"]]["name"]: graph[item["@id"]]["value"] for item in _listed(thing.get("additionalProperty"))
    }
    rows = "".join(
        f"<div><dt>{escape(_LABELS.get(name, name))}</dt><dd>{escape(_shown(name, value))}</dd></div>"
        for name, value in values.items()
    )
    head = f'<h3 id="{escape(thing["@id"][1:])}">{escape(thing["name"])}</h3>'
    return f"<div>{head}<dl>{rows}</dl></div>"


def _cards(things: Iterable[str]) -> str:
    return '<div class="header-block groups">\n' + "\n".join(things) + "\n</div>"


def _shown(name: str, value: Any) -> str:
    """Return a property's value as text, without loss of precision."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes"):
        shown = amount(value) if name == "memory_bytes" else size(value)  # drive sizes use powers of ten
        return shown if name == "logical_block_bytes" else f"{shown} ({value:,} bytes)"
    return quantity(value, "%") if name.endswith("_pct") else str(value)


def _listed(value: Any) -> list[Any]:
    """Return a value as a list: a single value is not in a list."""
    return [] if value is None else value if isinstance(value, list) else [value]


def _exact(text: str, title: str) -> str:
    return f'<span class="exact" title="{escape(title)}">{escape(text)}</span>'


def _link(entity: Entity) -> str:
    return f'<a href="{escape(entity["@id"])}">{escape(entity["name"])}</a>'


def _anchor(entity: Entity) -> str:
    return f'<span id="{escape(entity["@id"][1:])}">{escape(entity["name"])}</span>'


def _to(entity: Entity) -> str:
    return _link({"@id": entity["@id"].replace("%", "%25"), "name": entity["name"]})


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; on a phone, each cell after the second shows its column head."""
    marks = ["", "", *(f' data-head="{head}"' for head in heads[2:])] if len(heads) > 2 else [""] * len(heads)
    lines = [
        "<tr>" + "".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) + "</tr>"
        for row in rows
    ]
    head = "<thead><tr>" + "".join(f"<th>{name}</th>" for name in heads) + "</tr></thead>"
    return f'<div class="scroll"><table>\n{head}\n<tbody>\n' + "\n".join(lines) + "\n</tbody></table></div>"


_AUTHOR = re.compile(r"\s*([^<>]*[^<>\s])\s*(?:<\s*(?:https?://orcid\.org/)?([0-9Xx-]+)\s*>)?\s*")
_ORCID = re.compile(r"(\d{4}-){3}\d{3}[\dX]")
_SPDX = re.compile(r"(?!LicenseRef-)[A-Za-z0-9.-]+")
"""A single name; packaging checks the SPDX list, but would also accept expressions and custom names."""
_NO_LICENCE = "No licence was given: ask the authors before you use the data."


@dataclass(frozen=True)
class Publication:
    """The facts as in RO-Crate: references of the root data entity, and the referenced entities."""

    authors: tuple[dict[str, Any], ...] = ()
    licence: str | None = None
    """URL of the licence of the data."""
    published: str | None = None
    """Date; None for the date when the last recording finished."""

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The authors and the licence."""
        if self.licence is None:
            return list(self.authors)
        name = self.licence.rstrip("/").rpartition("/")[2]
        entity = {"@id": self.licence, "@type": "CreativeWork", "name": name, "description": f"Licence {name}"}
        return [*self.authors, entity]

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the root data entity."""
        licence: Any = _NO_LICENCE if self.licence is None else {"@id": self.licence}
        authors = [{"@id": author["@id"]} for author in self.authors]
        return {"license": licence, **({"author": authors} if authors else {})}


def publication(authors: Sequence[str], licence: str | None, published: str | None) -> Publication:
    """Return the facts from user input: `Name <ORCID>`, an SPDX name or a URL, a date; raises UserError for others."""
    if published is not None:
        try:
            date.fromisoformat(published)
        except ValueError:
            raise UserError(f"'{published}' is not a date; write it as 2026-05-01") from None
    return Publication(tuple(map(_author, authors)), None if licence is None else _licence(licence), published)


def _licence(text: str) -> str:
    """Return the URL of a licence."""
    try:
        url = urlsplit(text)
        if url.scheme in ("http", "https") and url.netloc:
            return text
        if _SPDX.fullmatch(text):
            return f"https://spdx.org/licenses/{canonicalize_license_expression(text)}"
    except ValueError:  # neither URL nor SPDX name
        pass
    raise UserError(
        f"'{text}' is not a licence; give a name listed at https://spdx.org/licenses/, such as CC-BY-4.0, or a URL"
    )


def _author(text: str) -> dict[str, Any]:
    match = _AUTHOR.fullmatch(text)
    if match is None or (match[2] and not _is_orcid(match[2].upper())):
        raise UserError(f"'{text}' is not an author; write 'Name', or with an ORCID 'Name <0000-0002-1825-0097>'")
    name = match[1]
    place = f"https://orcid.org/{match[2].upper()}" if match[2] else f"#author-{quote(name, safe='')}"
    return {"@id": place, "@type": "Person", "name": name}


def _is_orcid(text: str) -> bool:
    """Whether the text is an ORCID with a correct check digit (ISO/IEC 7064, MOD 11-2)."""
    if not _ORCID.fullmatch(text):
        return False
    total = 0
    for digit in text.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return text[-1] == ("X" if check == 10 else str(check))
