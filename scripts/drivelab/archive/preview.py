"""The metadata of an archive as one page for a browser (RO-Crate 1.1, RO-Crate Website)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import drivelab.report
from drivelab.archive.contents import ELSEWHERE
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
"""Beside the report's: there are no contents at the side, and on a phone cells stand below each other."""
_LABELS = {
    "firmware": "Firmware", "capacity_bytes": "Capacity", "logical_block_bytes": "Logical block",
    "lba_format": "LBA format", "transport": "Transport", "link": "Link", "over_provisioning_pct": "Over-provisioning",
    "write_cache": "Write cache", "virtual": "Virtual drive", "cpu": "CPU", "cores": "Cores", "memory_bytes": "Memory",
    "os": "Operating system",
}  # fmt: skip
Entity = Mapping[str, Any]


def preview(text: str, first: Sequence[str] = ()) -> str:
    """HTML of the text of the metadata, which it holds too; `first` are the files to read first, as far as they are
    there."""
    graph: dict[str, Entity] = {one["@id"]: one for one in json.loads(text)["@graph"]}
    root = graph["./"]
    authors = ", ".join(graph[one["@id"]]["name"] for one in _listed(root.get("author")))
    cite = f"{authors}{' ' if authors else ''}({root['datePublished'][:4]}). {root['name']} [data set]."
    licence = escape(root["license"]) if isinstance(root["license"], str) else _link(graph[root["license"]["@id"]])
    of_type = {kind: [one for one in graph.values() if one["@type"] == kind] for kind in
               ("IndividualProduct", "SoftwareApplication")}  # fmt: skip
    programs = ((_anchor(one), escape(one["softwareVersion"])) for one in of_type["SoftwareApplication"])
    actions = [_action(graph, graph[one["@id"]]) for one in _listed(root["mentions"])]
    sections = {
        "What is here": "\n".join(_files(graph, root, first)),
        "Measurements": _table(("Recording", "Begun", "Duration", "By", "On"), actions),
        "Drives and hosts": _cards(_thing(graph, one) for one in of_type["IndividualProduct"]),
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
    """Tables of what the root has, by folder, but for the recordings, which have a table of their own, and locks."""
    made = {one["result"]["@id"] for one in graph.values() if one["@type"] == "CreateAction"}
    places = {unquote(one): graph[one] for one in graph if graph[one]["@type"] in ("File", "Dataset")}
    yield _table(("Read first", "What it is", "Size"), (_file(places[one], one) for one in first if one in places))
    groups: dict[str, list[str]] = {}
    for one in _listed(root["hasPart"]):
        name = unquote(one["@id"])
        told = one["@id"] in made or any(of.startswith(name) for of in first)  # a file itself, or its folder
        if not told and not name.endswith(".lock"):
            groups.setdefault(name.rstrip("/").rpartition("/")[0], []).append(name)
    for folder in sorted(groups, key=lambda name: (name.startswith((".", ELSEWHERE)), name)):
        yield f"<h3><code>{escape(folder)}/</code></h3>"
        rows = (_file(places[name], name.removeprefix(f"{folder}/")) for name in groups[folder])
        yield _table(("Name", "What it is", "Size"), rows)


def _file(one: Entity, name: str) -> tuple[str, ...]:
    link = f'<a href="{escape(one["@id"])}">{escape(name)}</a>'
    size_bytes = one.get("contentSize")
    told = "" if size_bytes is None else _exact(amount(int(size_bytes)), f"{int(size_bytes):,} bytes")
    pages = [of["@id"] for of in _listed(one.get("hasPart")) if of["@id"].endswith("/index.html")]
    report = f'; <a href="{escape(pages[0])}">its report</a>' if pages else ""
    return link, escape(one["description"]) + report, told


def _action(graph: Mapping[str, Entity], one: Entity) -> tuple[str, ...]:
    result = graph[one["result"]["@id"]]
    fault = f'<small class="bad">not finished: {escape(one["error"])}</small>' if "error" in one else ""
    things = [graph[of["@id"]] for of in _listed(one["object"])]
    what = one["description"].partition(". ")[0]  # what follows is the same of all
    begun, ended = one.get("startTime"), one.get("endTime")
    lasted = (
        (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds() if begun and ended else None
    )
    return (
        f"{_link(result)}<small>{escape(what)}</small>{fault}",
        _exact(moment(begun), str(begun)),
        _exact(duration(lasted), f"until {ended}"),
        ", ".join(_to(graph[of["@id"]]) for of in _listed(one["instrument"])),
        ", ".join(_to(of) for of in things if of["@type"] == "IndividualProduct"),
    )


def _thing(graph: Mapping[str, Entity], one: Entity) -> str:
    values = {graph[of["@id"]]["name"]: graph[of["@id"]]["value"] for of in _listed(one.get("additionalProperty"))}
    rows = "".join(
        f"<div><dt>{escape(_LABELS.get(name, name))}</dt><dd>{escape(_told(name, value))}</dd></div>"
        for name, value in values.items()
    )
    head = f'<h3 id="{escape(one["@id"][1:])}">{escape(one["name"])}</h3>'
    return f"<div>{head}<dl>{rows}</dl></div>"


def _cards(things: Iterable[str]) -> str:
    return '<div class="header-block groups">\n' + "\n".join(things) + "\n</div>"


def _told(name: str, value: Any) -> str:
    """A property as people read it, with all that it says."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes"):
        shown = amount(value) if name == "memory_bytes" else size(value)  # drives are sold by powers of ten
        return shown if name == "logical_block_bytes" else f"{shown} ({value:,} bytes)"
    return quantity(value, "%") if name.endswith("_pct") else str(value)


def _listed(value: Any) -> list[Any]:
    """A single value stands alone, several in a list."""
    return [] if value is None else value if isinstance(value, list) else [value]


def _exact(words: str, title: str) -> str:
    return f'<span class="exact" title="{escape(title)}">{escape(words)}</span>'


def _link(one: Entity) -> str:
    return f'<a href="{escape(one["@id"])}">{escape(one["name"])}</a>'


def _anchor(one: Entity) -> str:
    return f'<span id="{escape(one["@id"][1:])}">{escape(one["name"])}</span>'


def _to(one: Entity) -> str:
    return _link({"@id": one["@id"].replace("%", "%25"), "name": one["name"]})


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """On a phone each cell but the first two says its head."""
    marks = ["", "", *(f' data-head="{head}"' for head in heads[2:])] if len(heads) > 2 else [""] * len(heads)
    lines = [
        "<tr>" + "".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) + "</tr>"
        for row in rows
    ]
    head = "<thead><tr>" + "".join(f"<th>{one}</th>" for one in heads) + "</tr></thead>"
    return f'<div class="scroll"><table>\n{head}\n<tbody>\n' + "\n".join(lines) + "\n</tbody></table></div>"
