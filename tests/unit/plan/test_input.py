"""Studies, sheets and protocols that are no text, ambiguous or endless; the table of refusals has the rest."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from drivelab.campaign.planning import Campaign
from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.core.files import MOST_TEXT_BYTES
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.places import ROOT
from drivelab.plan.schema import find_violation
from drivelab.plan.yaml_file import MOST_DEEP, MOST_VALUES, load, load_yaml

STUDY, SHEET, VIRTUAL = "config/demo.yaml", "config/drives.tsv", "config/virtual_drives.yaml"


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "config/nothing.yaml"), "config/nothing.yaml: the file does not exist"),
        (("measure", "nothing.json", "--after", "x"), "nothing.json: the plan does not exist"),
        (("virtual", "start", "nothing"), "nothing"),
        (("capture-trace", STUDY, "other", "-o", "x"), "traces.other"),
    ],
)
def test_a_mistyped_argument_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(list(arguments)) == 2
    assert words in capsys.readouterr().err


def test_shipped_studies_are_valid(project: Path) -> None:
    for study in ("config/demo.yaml", "config/study.yaml"):
        assert Campaign.load(study).plans


def test_a_sheet_that_is_not_text_is_refused(project: Path) -> None:
    (project / SHEET).write_bytes("drive\tdevice\tserial\tdestructive\tnote\nä".encode("latin-1"))
    with pytest.raises(UserError, match=r"drives\.tsv: is not UTF-8 text; name a sheet of tab-separated text"):
        Campaign.load(STUDY)


LEAST: dict[str, Any] = {"name": "x", "drives": ["a"], "measurements": [{"protocol": "pts-iops"}]}
INVISIBLE = ("\n", " ", "\r", "\t", "\x00", "\x1b[2J", "\u202e")


@pytest.mark.parametrize("end", INVISIBLE, ids=ascii)
@pytest.mark.parametrize(
    ("key", "value"), [("name", "x"), ("results", "results/s"), ("drives_sheet", "config/drives.tsv"), ("basis", "a")]
)
def test_an_invisible_character_in_a_name_is_refused(key: str, value: str, end: str) -> None:
    violation = find_violation({**LEAST, key: f"{value}{end}"}, "study")
    assert violation is not None
    assert violation.keys == (key,)


def test_lists_keys_and_mappings_are_checked() -> None:
    for body, keys in (
        ({**LEAST, "drives": ["a\n"]}, ("drives", 0)),
        ({**LEAST, "measurements": [{"protocol": "pts-iops\n"}]}, ("measurements", 0, "protocol")),
        ({**LEAST, "traces": {"t": {"file": "a.parquet\n"}}}, ("traces", "t", "file")),
    ):
        violation = find_violation(body, "study")
        assert violation is not None
        assert violation.keys == keys


def test_texts_for_people_may_have_lines() -> None:
    assert find_violation({**LEAST, "title": "two\nlines\n", "host_note": "a\nb\n"}, "study") is None
    assert find_violation(LEAST, "study") is None


AMBIGUOUS = ["010", "+012", "-07", "089", "00", "1:30", "190:20:30", "1:30.5", "1_000", "0b11", "0o17", "1e3", "1.5e3",
             "yes", "No", "ON", "off", "="]  # fmt: skip
LAUGHS = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))])
HEADER = "drive\tdevice\tserial\tdestructive\tnote\n"


@pytest.mark.parametrize("value", AMBIGUOUS)
def test_a_value_that_versions_of_yaml_read_differently_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.yaml"
    for text in (f"a: 1\nb: {value}\n", f"a: 1\nb: [{value}]\n"):
        path.write_text(text)
        with pytest.raises(UserError, match=r"a\.yaml line 2: '.*' means different things in YAML 1\.1 and 1\.2"):
            load_yaml(path)
    path.write_text(f"a: '{value}'\nb: \"{value}\"\n")
    assert load_yaml(path) == {"a": value, "b": value}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: " + "[" * 3000 + "]" * 3000, f"is nested more than {MOST_DEEP} deep"),
        ("a: " + "{b: " * 3000 + "}" * 3000, f"is nested more than {MOST_DEEP} deep"),
        (LAUGHS, f"has more than {MOST_VALUES:,} values, counting those that aliases repeat"),
        # The first mapping has the last word for PyYAML up to 6.0.3, the last one for 6.0.4.
        ("a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: [*a, *b]}\n", "merges several mappings"),
        ("a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: *a, <<: *b}\n", "merges several mappings"),
        ("a: &a [{x: 1}, {x: 2}]\nc:\n  <<: *a\n", "merges several mappings"),
        (f"a: {'9' * 5000}\n", "is not a number that drivelab can use"),
    ],
)
def test_refused_yaml_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=rf"line \d+: .*{problem}"):
        load_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("command", ["study check", "protocol check", "plan"])
def test_every_command_refuses_such_yaml_in_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("a: " + "[" * 3000 + "]" * 3000, "a: 1\nb: 2\na: 3\n", "a: !!int '3'\n", "a: b: c\n"):
        (tmp_path / "a.yaml").write_text(text)
        assert main([*command.split(), str(tmp_path / "a.yaml")]) == 2
        with pytest.raises(UserError) as refusal:
            load_yaml(tmp_path / "a.yaml")
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert str(refusal.value).partition(": ")[2] in error


def test_merged_mappings_and_aliases_are_accepted() -> None:
    assert load("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]\n") == {
        "a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": [{"x": 1, "y": 2}] * 2,
    }  # fmt: skip


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert load_yaml(path) == {"a": 1, "b": 2}


SOME = st.sampled_from(["a", "b: ", "\n", "- ", "[", "]", "{", "}", ", ", "&x ", "*x", "<<: ", "? ", "!!int ", "'", '"',
                        "#", "|", ">", "010", "1:30", "yes", "1", ".", "\t", " ", "---", "%", "\x00", "\ufeff", "\x85",
                        "\\", "\ud7ff", "\U0001f44d", "0x", "inf", "1e9"])  # fmt: skip


@given(st.one_of(st.lists(SOME, max_size=40).map("".join), st.text(max_size=60)))
@example("a: '\\ud800'")
@example('"\\U00110000": 1')
def test_any_text_is_read_as_pyyaml_reads_it_or_refused(text: str) -> None:
    try:
        value = load(text)
    except yaml.YAMLError:
        return
    assert value == yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def test_any_bytes_are_a_mapping_or_refused_in_a_sentence(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("bytes") / "a.yaml"

    @given(st.binary(max_size=80))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        for read in (load_yaml, load_sheet):
            with suppress(UserError):  # which names the file
                assert isinstance(read(path), dict)  # type: ignore[operator]

    check()


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device", "folder", "link to itself", "socket", "huge",
                                  "missing", "name too long"])  # fmt: skip
@pytest.mark.parametrize("read", [load_yaml, load_sheet])
def test_a_pipe_or_socket_is_refused_without_waiting(
    tmp_path: Path, kind: str, read: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket has room for 107 bytes
    path = Path("a")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link to itself":
        path.symlink_to("a")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("a")
    elif kind == "huge":
        path.touch()
        os.truncate(path, MOST_TEXT_BYTES + 1)
    elif kind == "name too long":
        path = Path("a" * 300)
    with pytest.raises(UserError, match=rf"^{path}: .*; "):
        read(path)  # type: ignore[operator]


def test_a_serial_number_of_a_sheet_is_text(tmp_path: Path) -> None:
    path = tmp_path / "drives.tsv"
    path.write_text("drive\tdevice\tserial\tdestructive\tnote\na\t/dev/disk/by-id/x\t010\tyes\t1:30\n")
    row = load_sheet(path)["a"]
    assert (row.serial, row.destructive, row.note) == ("010", True, "1:30")
