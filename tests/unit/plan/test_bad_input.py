"""Every mistake in the configuration is refused before any change, with file and key in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.places import ROOT

Change = Callable[[str], str]

STUDY, SHEET, VIRTUAL = "config/demo.yaml", "config/drives.tsv", "config/virtual_drives.yaml"
IOPS, REPLAY = "config/protocols/pts-iops.yaml", "config/protocols/trace-replay.yaml"


def swap(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text, f"the test is out of date: {old!r} is not in the file"
        return text.replace(old, new, 1)

    return change


TRACE = """
    capture: sqlite-inserts    # traced on this host if the kernel permits it,
    origin: trace-origin       # on a file system on this virtual drive;
    shipped: sqlite-inserts    # otherwise the trace in traces/ is replayed"""
CASES = {
    "unknown drive": (STUDY, swap("[op7, op28]", "[op7, op99]"), ["demo.yaml", "drives", "op99"]),
    "unknown protocol": (STUDY, swap("protocol: pts-iops", "protocol: pts-iosp"), ["demo.yaml", "measurements[0]", "pts-iosp"]),
    "unknown key": (STUDY, swap("title:", "titel:"), ["demo.yaml", "titel", "title"]),
    "unknown key in an entry": (STUDY, swap("scale: demo}", "scle: demo}"), ["demo.yaml", "measurements[0]", "scle"]),
    "unknown scale": (STUDY, swap("scale: demo", "scale: dmeo"), ["demo.yaml", "dmeo"]),
    "unknown basis": (STUDY, swap("basis: op7", "basis: op8"), ["demo.yaml", "basis", "op8"]),
    "unknown trace": (STUDY, swap("trace: sqlite", "trace: sqltie"), ["demo.yaml", "measurements[2]", "sqltie"]),
    "unknown trace of a set": (STUDY, swap("trace: sqlite", "traces: [sqlite, sqltie]"), ["demo.yaml", "measurements[2].traces", "sqltie"]),
    "a trace and a set": (STUDY, swap("trace: sqlite", "trace: sqlite, traces: [sqlite]"), ["demo.yaml", "measurements[2]", "both"]),
    "a trace for a test without": (STUDY, swap("pts-iops, scale: demo", "pts-iops, scale: demo, trace: sqlite"), ["demo.yaml", "measurements[0]", "uses no trace"]),
    "no trace for a replay": (STUDY, swap(", trace: sqlite", ""), ["demo.yaml", "measurements[2]", "trace"]),
    "missing trace file": (STUDY, swap("shipped: sqlite-inserts", "shipped: nothing-here"), ["nothing-here"]),
    "trace from two places": (STUDY, swap("shipped: sqlite-inserts", "shipped: sqlite-inserts\n    file: x"), ["traces.sqlite", "either"]),
    "trace from nowhere": (STUDY, swap(TRACE, " {}"), ["traces.sqlite", "either"]),
    "missing own trace": (STUDY, swap(TRACE, " {file: nix.parquet}"), ["traces.sqlite.file", "nix.parquet"]),
    "unknown application": (STUDY, swap("capture: sqlite-inserts", "capture: sqlite-deletes"), ["sqlite-deletes"]),
    "drive named twice": (STUDY, swap("[op7, op28]", "[op7, op7]"), ["demo.yaml", "drives", "duplicate"]),
    "measurement named twice": (STUDY, swap("protocol: pts-write-saturation", "protocol: pts-iops"), ["demo.yaml", "twice"]),
    "key written twice": (STUDY, swap("basis: op7", "basis: op7\nbasis: op28"), ["demo.yaml line", "basis"]),
    "odd characters": (STUDY, swap("name: demo", "name: 'demo; rm -rf /'"), ["demo.yaml", "name"]),
    "results outside": (STUDY, swap("results: results", "results: ../elsewhere"), ["demo.yaml", "results"]),
    "no margin": (STUDY, swap("basis: op7", "basis: op7\nanalysis: {margin: 0%}"), ["demo.yaml", "analysis.margin", "larger"]),
    "whole confidence": (STUDY, swap("basis: op7", "basis: op7\nanalysis: {confidence: 100%}"), ["demo.yaml", "analysis.confidence"]),
    "unknown way with differences": (STUDY, swap("basis: op7", "basis: op7\nanalysis: {unintended: ignore}"), ["demo.yaml", "unintended", "forbid"]),
    "set with a number for a mapping": (STUDY, swap("scale: demo}", "scale: demo, set: {loop: 3}}"), ["demo.yaml", "measurements[0]", "loop"]),
    "set changes the name": (STUDY, swap("scale: demo}", "scale: demo, set: {name: x}}"), ["demo.yaml", "measurements[0]", "name"]),
    "no runtime": (STUDY, swap("scale: demo}", "scale: demo, set: {loop: {runtime: 0s}}}"), ["0s"]),
    "one size in two units": (IOPS, swap("[1024KiB, 128KiB", "[1024KiB, 1MiB, 128KiB"), ["pts-iops", "twice"]),
    "number out of range": (STUDY, swap("runs: 3", "runs: 0"), ["demo.yaml", "runs"]),
    "no YAML": (STUDY, swap("drives: [op7, op28]", "drives: [op7, op28"), ["demo.yaml line"]),
    "serial does not match": (SHEET, swap("VIRTUAL-OP7", "VIRTUAL-OP8"), ["drives.tsv line 2", "VIRTUAL-OP8"]),
    "serial missing": (SHEET, swap("VIRTUAL-OP7", ""), ["drives.tsv line 2", "serial"]),
    "drive twice in the sheet": (SHEET, swap("op28\t", "op7\t"), ["drives.tsv line 3", "op7"]),
    "serial twice in the sheet": (SHEET, swap("VIRTUAL-OP28", "VIRTUAL-OP7"), ["drives.tsv line 3", "VIRTUAL-OP7"]),
    "not destructive": (SHEET, swap("VIRTUAL-OP7\tyes", "VIRTUAL-OP7\tno"), ["drives.tsv line 2", "destructive"]),
    "destructive unclear": (SHEET, swap("VIRTUAL-OP7\tyes", "VIRTUAL-OP7\tmaybe"), ["drives.tsv line 2", "maybe"]),
    "device by a name that changes": (SHEET, swap("virtual:op7", "/dev/sda"), ["drives.tsv line 2", "/dev/sda"]),
    "odd drive name": (SHEET, swap("op7\t", "op7;ls\t"), ["drives.tsv line 2", "op7;ls"]),
    "columns": (SHEET, swap("serial", "sreial"), ["drives.tsv line 1", "serial"]),
    "unknown virtual drive": (SHEET, swap("virtual:op7", "virtual:op9"), ["drives.tsv line 2", "op9"]),
    "cells below the logical block": (STUDY, swap("pts-iops, scale: demo", "pts-iops"), ["op7", "pts-iops", "512B", "4KiB"]),
    "block size unreadable": (IOPS, swap("4KiB, 512B", "4KB, 512B"), ["pts-iops.yaml", "4KB"]),
}  # fmt: skip


@pytest.mark.parametrize(("file", "change", "words"), CASES.values(), ids=CASES)
def test_refused_with_file_and_key(project: Path, file: str, change: Change, words: list[str]) -> None:
    path = project / file
    path.write_text(change(path.read_text()))
    with pytest.raises(UserError) as refusal:
        Campaign.load(STUDY)
    sentence = str(refusal.value)
    for word in words:
        assert word in sentence
    assert "\n" not in sentence
    assert not (project / "results").exists(), "a refused study must create nothing"


SENTENCES = {
    "order: {randm: 7}": "key 'order': unknown key 'randm'; did you mean 'random'?",
    "order: random": "key 'order': 'random' is not allowed here; write fixed or {random: SEED} (",
    "order:": "key 'order': has no value; write fixed or {random: SEED} (",
    "order: {random: x}": "key 'order.random': 'x' is not of type integer (seed of the random order;",
    "concurrency: many": "key 'concurrency': 'many' is not allowed here; write a whole number or {HOST: NUMBER} (",
    "concurrency: 0": "key 'concurrency': 0 is below 1 (simultaneous measurements",
    "concurrency: {any: 0}": "key 'concurrency.any': 0 is below 1.",
    "concurrency: {}": "key 'concurrency': is empty; give at least one key (",
    "budget:": "key 'budget': has no value; give a mapping (limits of the study",
    "budget: {}": "key 'budget': is empty; give at least one key (",
    "write_cache: on": "key 'write_cache': true is not one of by-protocol, on, off, unchanged; put 'on' and 'off' in quotes",
    "runs: true": "key 'runs': true is not allowed here; write a whole number or {least: NUMBER, most: NUMBER, until: decided} (",
    "consent: ['']": "key 'consent[0]': is empty; write a text.",
    "meter: {command: []}": "key 'meter.command': is empty; give at least one entry (",
    "traces: {a: {capture: x}}": "key 'traces.a': {'capture': 'x'} has 'capture', which also needs 'origin'.",
    "measurements: []": "key 'measurements': is empty; give at least one entry.",
}
"""Beginning of the error for each wrong line of a study."""


@pytest.mark.parametrize(("wrong", "sentence"), SENTENCES.items(), ids=SENTENCES)
def test_the_refusal_uses_the_words_of_the_study(project: Path, wrong: str, sentence: str) -> None:
    body = {**yaml.safe_load((project / STUDY).read_text()), **yaml.safe_load(wrong)}
    (project / STUDY).write_text(yaml.safe_dump(body))
    with pytest.raises(UserError) as refusal:
        Campaign.load(STUDY)
    assert str(refusal.value).startswith(f"{STUDY}: {sentence}")


@pytest.mark.parametrize("name", ["study", "protocol"])
def test_every_alternative_of_a_schema_has_a_name(name: str) -> None:
    waiting = [yaml.safe_load((ROOT / f"workflow/schemas/{name}.schema.yaml").read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for alternative in (*node.get("anyOf", ()), *node.get("oneOf", ())):
                assert alternative.keys() & {"title", "const"}, alternative
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "is a folder; name a study file"),
        (b"\xff\xfe\x00", "is not UTF-8 text; name a study file, or save the file as UTF-8"),
        (
            b"a\x00b",
            "contains characters that text cannot contain (control characters are not allowed); name a study file",
        ),
    ],
    ids=["folder", "not UTF-8", "control characters"],
)
def test_a_study_that_is_not_text_is_refused(project: Path, content: bytes | None, sentence: str) -> None:
    path = project / "config/other"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(UserError) as refusal:
        Campaign.load("config/other")
    assert str(refusal.value) == f"config/other: {sentence}"


def test_an_unreadable_file_is_refused_with_the_reason(project: Path) -> None:
    with pytest.raises(UserError) as refusal:
        Campaign.load(f"{STUDY}/x")
    assert str(refusal.value) == f"{STUDY}/x: cannot be read (Not a directory); check the file"


def test_missing_files_are_named(project: Path) -> None:
    for file in (STUDY, SHEET, VIRTUAL):
        text = (project / file).read_text()
        (project / file).unlink()
        with pytest.raises(UserError, match=file.split("/")[1]):
            Campaign.load(STUDY)
        (project / file).write_text(text)


def test_shipped_studies_are_valid(project: Path) -> None:
    for study in ("config/demo.yaml", "config/study.yaml"):
        assert Campaign.load(study).plans


def test_a_basis_without_measurements_is_refused(project: Path) -> None:
    text = (project / STUDY).read_text()
    head = text[: text.index("measurements:")]
    (project / STUDY).write_text(head + "measurements:\n  - {protocol: pts-iops, scale: demo, drives: [op28]}\n")
    with pytest.raises(UserError, match=r"key 'basis' is 'op7', on which nothing is measured"):
        Campaign.load(STUDY)


def test_a_sheet_that_is_not_text_is_refused(project: Path) -> None:
    (project / SHEET).write_bytes("drive\tdevice\tserial\tdestructive\tnote\nä".encode("latin-1"))
    with pytest.raises(UserError, match=r"drives\.tsv: is not UTF-8 text; name a sheet of tab-separated text"):
        Campaign.load(STUDY)
