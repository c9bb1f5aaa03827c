"""Changes to a finished study, its code or its environment, for the truth table of reruns."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from mini_project import Project

Change = Callable[[Project], None]
DAY_NS = 24 * 3600 * 10**9


def edit(file: str, old: str, new: str) -> Change:
    return lambda project: project.edit(file, old, new)


def mini(old: str, new: str) -> Change:
    return edit("config/mini.yaml", old, new)


def sheet(old: str, new: str) -> Change:
    return edit("config/drives.tsv", old, new)


def append(file: str, text: str = "\nEXTRA = 1\n") -> Change:
    def make(project: Project) -> None:
        path = project.folder / file
        path.write_text(path.read_text() + text)

    return make


def gone(pattern: str) -> Change:
    """Delete the first file or folder that matches the pattern."""

    def make(project: Project) -> None:
        path = min(project.folder.glob(pattern))
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return make


def both(*changes: Change) -> Change:
    def make(project: Project) -> None:
        for change in changes:
            change(project)

    return make


THRESHOLD = mini("relative_standard_error: 5%", "relative_standard_error: 0.001%")
WITHOUT_OP28 = mini("drives: [op7, op28]", "drives: [op7]")
MARGIN = mini("relative_standard_error: 5%", "relative_standard_error: 5%\n  margin: 1%")


def _sources(project: Project) -> list[Path]:
    outside = {"results", ".snakemake"}
    return [path for path in project.folder.rglob("*") if path.is_file() and not outside & set(path.parts)]


def checkout(project: Project) -> None:
    for path in _sources(project):
        os.utime(path)


def other_commit_and_back(project: Project) -> None:
    """Rewrite files as git does: those that differ, with the present time."""
    for path in _sources(project):
        if path.suffix in (".py", ".smk", ".yaml"):
            text = path.read_text()
            path.write_text("# another commit\n")
            path.write_text(text)


def comment_in_rules(project: Project) -> None:
    project.edit("workflow/rules/measure.smk", "rule measure:", "# measuring\nrule measure:")
    project.edit("Snakefile", "rule all:", "# everything\nrule all:")


def key_order(project: Project) -> None:
    project.edit("config/mini.yaml", "name: mini\nresults: results\n", "results: results\nname: mini\n")
    project.edit(
        "config/protocols/pts-iops.yaml", "  purge: required\n  settle: 30s\n", "  settle: 30s\n  purge: required\n"
    )


def _records(project: Project) -> list[Path]:
    """Return the files of Snakemake's records of how each file was made."""
    return [path for path in (project.folder / ".snakemake/metadata").rglob("*") if path.is_file()]


def records_of_format(version: int) -> Change:
    def make(project: Project) -> None:
        for path in _records(project):
            path.write_text(json.dumps({**json.loads(path.read_text()), "record_format_version": version}))

    return make


def records_with_more(project: Project) -> None:
    """Change records as another version of the same format would: one field more, one less."""
    for path in _records(project):
        record = json.loads(path.read_text())
        del record["software_stack_hash"]
        path.write_text(json.dumps({**record, "of_the_future": [1]}))


def copied_without_times(project: Project) -> None:
    """Set file times as `cp -r` does: the time of copying, in the order of the folder."""
    for number, path in enumerate(sorted((project.folder / "results").rglob("*"))):
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10**10 - number))


def archived_in_seconds(project: Project) -> None:
    """Set file times as tar does: whole seconds, in the original order."""
    for path in (project.folder / "results").rglob("*"):
        os.utime(path, ns=(0, path.stat().st_mtime_ns // 10**9 * 10**9))


def clock_set_back(project: Project) -> None:
    """Give all outputs and Snakemake's records times of tomorrow."""
    for path in (project.folder / "results").rglob("*"):
        os.utime(path, ns=(0, path.stat().st_mtime_ns + DAY_NS))
    for path in _records(project):
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, "endtime": record["endtime"] + DAY_NS / 1e9}))


def moved(project: Project) -> None:
    project.folder = project.folder.rename(project.folder.with_name("moved"))


def renamed_sheet(project: Project) -> None:
    sheet_of = project.folder / "config/drives.tsv"
    sheet_of.rename(sheet_of.with_name("bench.tsv"))
    mini("name: mini\n", "name: mini\ndrives_sheet: config/bench.tsv\n")(project)


def moved_trace(project: Project) -> None:
    """Use the same trace from another file."""
    shutil.copy(project.folder / "traces/sqlite-inserts.parquet", project.folder / "own.parquet")
    mini("{shipped: sqlite-inserts}", "{file: own.parquet}")(project)


def renamed_study(project: Project) -> None:
    project.study = "config/renamed.yaml"
    (project.folder / "config/mini.yaml").rename(project.folder / project.study)


def _one_recording(project: Project) -> Path:
    return min((project.folder / "results/recordings/op7/pts-iops").iterdir())


def replaced_recording(project: Project) -> None:
    """Replace a recording by one of the same plan from another host."""
    manifest = _one_recording(project) / "recording.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()), indent=4))


def altered_evidence(project: Project) -> None:
    path = min(_one_recording(project).rglob("fio.json"))
    path.write_text(path.read_text().replace("1", "2"))


def same_manifest_touched(project: Project) -> None:
    os.utime(_one_recording(project) / "recording.json")


def one_block_size_of_op7(project: Project) -> None:
    path = project.folder / "config/mini.yaml"
    head, entry, rest = path.read_text().partition("  - protocol: pts-iops\n")
    settings, following, rest = rest.partition("  - protocol: pts-write")
    other = settings.replace("&short", "").replace("block_size: [4KiB]", "block_size: [8KiB, 4KiB]")
    entries = f"{entry}    drives: [op28]\n{settings}{entry}    drives: [op7]\n{other}"
    path.write_text(head + entries + following + rest)


def reordered(project: Project) -> None:
    project.edit("config/mini.yaml", REPLAY_ENTRY, "")
    project.edit("config/mini.yaml", "measurements:\n", "measurements:\n" + REPLAY_ENTRY)


def column(name: str, of_op7: str) -> Change:
    """Add a column to the sheet."""

    def make(project: Project) -> None:
        path = project.folder / "config/drives.tsv"
        head, *rows = path.read_text().splitlines()
        filled = [f"{row}\t{of_op7 if row.startswith('op7' + chr(9)) else ''}" for row in rows]
        path.write_text("\n".join([f"{head}\t{name}", *filled]) + "\n")

    return make


def moved_drive(project: Project) -> None:
    """Change the path of a drive, as in another slot, with the same serial."""
    project.edit("config/virtual_drives.yaml", "op7:\n  <<: *op28\n", "slot2:\n  <<: *op28\n")
    project.edit("config/drives.tsv", "\tvirtual:op7\t", "\tvirtual:slot2\t")


def renamed_drive(project: Project) -> None:
    project.edit("config/drives.tsv", "op7\tvirtual:op7\t", "left\tvirtual:op7\t")
    mini("basis: op7\ndrives: [op7,", "basis: left\ndrives: [left,")(project)


def updated(firmware: str) -> Change:
    """Give the drive op7 another firmware, whatever the sheet says."""
    serial = "  serial: VIRTUAL-OP7\n"
    return edit("config/virtual_drives.yaml", serial, f"{serial}  firmware: {firmware}\n")


FIRMWARE_A, FIRMWARE_B = "VFTL0001", "VFTL0002"
PINNED = column("firmware", FIRMWARE_A)
REPLAY_ENTRY = "  - protocol: trace-replay\n    scale: demo\n    trace: sqlite\n"
PROTOCOL = "config/protocols/pts-iops.yaml"
