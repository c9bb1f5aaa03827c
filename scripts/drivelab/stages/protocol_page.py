"""Describe protocols: on the terminal, as pages of docs/protocols, and as its index."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from drivelab.protocol.grammar import Protocol, Resolved, resolve
from drivelab.stages.procedure import Part, Subject, procedure, total

_WIDTH = 110
_NEEDS = (("simultaneous", "its drives at the same time"), ("replays", "a trace"), ("takes_streams", "one trace"),
          ("applications", "an application"))  # fmt: skip
_ESTIMATES = (
    "Times and volumes are estimates: a lower bound, for a fast drive and an early steady state, and an upper bound."
)
_BEGIN, _END = "<!-- made by drivelab protocol {} --markdown; a test compares -->\n\n", "\n"


def text(
    protocol: Protocol,
    resolved: Sequence[Resolved],
    words: str,
    subject: Subject,
    drive_class: str,
    scale: str | None,
) -> str:
    """Return the description of a protocol for the terminal; `words` describe the drive."""
    lines = [f"{protocol.name}: {protocol.body['title']}", f"    after {protocol.body['source']}"]
    lines += [f"    needs {needs}" for needs in _needs(protocol)]
    lines += ["", *textwrap.wrap(protocol.description.strip(), _WIDTH), ""]
    length = f"scale {scale}: REDUCED, not a result of the full-length test" if scale else "full length"
    lines.append(f"{drive_class} class, {length}, for {words}:")
    for variant in resolved:
        parts = procedure(variant, subject)
        lines += [""] + ([f"{variant.variant}:"] if variant.variant is not None else [])
        for part in (*parts, total(parts)):
            lines += _wrapped(part)
    for difference in resolved[0].altered:
        lines += textwrap.wrap(f"reduced: {difference}", _WIDTH, subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _wrapped(part: Part) -> Iterator[str]:
    yield from textwrap.wrap(part.words, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    for detail in part.details:
        yield from textwrap.wrap(detail, _WIDTH, initial_indent="      ", subsequent_indent="      ")
    yield f"      time {part.time}; written {part.written}"


def page(protocol: Protocol, words: str, subject: Subject) -> str:
    """Return Markdown: what the test answers, what it does to a drive, and the source of each parameter."""
    body = protocol.body
    lines = [f"# {protocol.name}", "", f"**{body['title']}**. After: {body['source']}.", "",
             *textwrap.wrap(protocol.description.strip(), 118), ""]  # fmt: skip
    if needs := list(_needs(protocol)):
        lines += [f"It needs {' and '.join(needs)}; name them in the study.", ""]
    lines += [f"In a study: `- {{protocol: {protocol.name}}}`. More: `./drivelab protocol show {protocol.name}`.", ""]
    lines += ["## What it does", "", f"At full length, enterprise class, to {words}. {_ESTIMATES}", ""]
    for variant in resolve(protocol, "enterprise", None, {}, protocol.name):
        if variant.variant is not None:
            lines += [f"### {variant.variant}", ""]
        parts = procedure(variant, subject)
        lines += ["| part | time | written |", "|---|---|---|"]
        lines += [f"| {_cell(part)} | {part.time} | {part.written} |" for part in (*parts, total(parts))]
        lines.append("")
    lines += ["## Sources of the parameters", "", "| parameter | source |", "|---|---|"]
    lines += [f"| `{path}` | {source} |" for path, source in body["sources"].items()]
    scales = ", ".join(f"`{name}`" for name in body.get("scale", {}))
    lines += ["", f"Scales that shorten it (the results are then *reduced*): {scales or 'none'}."]
    return _BEGIN.format(f"show {protocol.name}") + "\n".join(lines) + _END


def _cell(part: Part) -> str:
    return "<br>".join((part.words, *(textwrap.shorten(detail, 400, placeholder=" …") for detail in part.details)))


def index(protocols: Sequence[Protocol]) -> str:
    """Return Markdown: the index of all protocols."""
    lines = ["# The protocols", "", "[How to write one](../protocols.md).", "", "| protocol | what | after |",
             "|---|---|---|"]  # fmt: skip
    lines += [
        f"| [{protocol.name}]({protocol.name}.md) | {protocol.body['title']} | {protocol.body['source']} |"
        for protocol in protocols
    ]
    return _BEGIN.format("list") + "\n".join(lines) + _END


def _needs(protocol: Protocol) -> Iterator[str]:
    for name, need in _NEEDS:
        if getattr(protocol, name) and not (name == "replays" and protocol.takes_streams):
            yield need
