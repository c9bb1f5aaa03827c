"""The metadata of an archive as one page for a browser (RO-Crate 1.1, RO-Crate Website)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin-bottom:2rem}th,td{text-align:left;vertical-align:top;"
    "padding:.2rem .8rem .2rem 0;border-bottom:1px solid #ddd}code{font-size:.9em;word-break:break-all}"
)


def preview(text: str) -> str:
    """HTML of the text of the metadata, which it holds too."""
    graph = {one["@id"]: one for one in json.loads(text)["@graph"]}
    root = graph["./"]
    authors = ", ".join(graph[one["@id"]]["name"] for one in _listed(root.get("author")))
    cite = f"{authors}{' ' if authors else ''}({root['datePublished'][:4]}). {root['name']} [data set]."
    licence = root["license"] if isinstance(root["license"], str) else _link(graph[root["license"]["@id"]])
    actions = [graph[one["@id"]] for one in _listed(root["mentions"])]
    of_type = {kind: [one for one in graph.values() if one["@type"] == kind] for kind in
               ("IndividualProduct", "SoftwareApplication")}  # fmt: skip
    body = [
        f"<h1>{escape(root['name'])}</h1><p>{escape(root['description'])}.</p>",
        f"<p>Cite as: {escape(cite)}</p><p>Published {escape(root['datePublished'])}. Licence: {licence}</p>",
        "<h2>What is here</h2>",
        _table(("Name", "What"), ((_link(one), escape(one.get("description", ""))) for one in _parts(graph, root))),
        "<h2>Drives and hosts</h2>",
        _table(("Name", "What"), ((_anchor(one), _properties(graph, one)) for one in of_type["IndividualProduct"])),
        "<h2>Programs</h2>",
        _table(
            ("Name", "Version"),
            ((_anchor(one), escape(one["softwareVersion"])) for one in of_type["SoftwareApplication"]),
        ),
        "<h2>Measurements</h2>",
        _table(("Recording", "Begun", "Ended", "By", "On"), (_action(graph, one) for one in actions)),
    ]
    data = text.replace("</", "<\\/")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(root["name"])}</title>'
        f'<style>{_STYLE}</style>\n<script type="application/ld+json">\n{data}</script></head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _parts(graph: dict[str, Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    """What the root has, but for the recordings, which have a table of their own."""
    made = {one["result"]["@id"] for one in graph.values() if one["@type"] == "CreateAction"}
    return [graph[one["@id"]] for one in _listed(root["hasPart"]) if one["@id"] not in made]


def _action(graph: dict[str, Any], one: dict[str, Any]) -> tuple[str, ...]:
    result = graph[one["result"]["@id"]]
    fault = f"<br>not finished: {escape(one['error'])}" if "error" in one else ""
    things = [graph[of["@id"]] for of in _listed(one["object"])]
    return (
        _link(result) + fault,
        escape(one.get("startTime", "")),
        escape(one.get("endTime", "")),
        ", ".join(_to(graph[of["@id"]]) for of in _listed(one["instrument"])),
        ", ".join(_to(of) for of in things if of["@type"] == "IndividualProduct"),
    )


def _properties(graph: dict[str, Any], one: dict[str, Any]) -> str:
    values = [graph[of["@id"]] for of in _listed(one.get("additionalProperty"))]
    return escape(", ".join(f"{value['name']}: {value['value']}" for value in values))


def _listed(value: Any) -> list[Any]:
    """A single value stands alone, several in a list."""
    return [] if value is None else value if isinstance(value, list) else [value]


def _link(one: dict[str, Any]) -> str:
    return f'<a href="{escape(one["@id"])}">{escape(one["name"])}</a>'


def _anchor(one: dict[str, Any]) -> str:
    return f'<span id="{escape(one["@id"][1:])}">{escape(one["name"])}</span>'


def _to(one: dict[str, Any]) -> str:
    return _link({"@id": one["@id"].replace("%", "%25"), "name": one["name"]})


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    head = "<tr>" + "".join(f"<th>{one}</th>" for one in heads) + "</tr>"
    return f"<table>\n{head}\n" + "\n".join(lines) + "\n</table>"
