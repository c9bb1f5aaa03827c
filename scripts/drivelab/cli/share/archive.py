"""`drivelab archive`: pack a study into a file, verify it, restore it."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.archive import KINDS
from drivelab.cli.measure.run import in_project
from drivelab.core.errors import UserError
from drivelab.core.terminal import NO_REDIRECTION, console, print_json
from drivelab.core.units import format_amount, some
from drivelab.plan.places import COMMAND

if TYPE_CHECKING:
    from drivelab.archive.create import Written
    from drivelab.archive.verify import Verdict
    from drivelab.plan.study import Study

_MOST_NAMED = 5
"""Number of file names that a sentence lists."""


def add_parser(commands: Any) -> None:
    """Register `archive`."""
    parser = commands.add_parser("archive", help="pack a study into one file, verify and restore it")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="pack a whole study into one file (tar.gz with checksums)")
    create.add_argument("study", metavar="STUDY", help="study file")
    create.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="path to create; must not exist"
    )
    create.add_argument(
        "--without", action="append", default=[], choices=KINDS, help="kind of file to leave out; repeatable"
    )
    create.set_defaults(handler=_create)
    verify = actions.add_parser("verify", help="check that archives and their recordings are unaltered")
    verify.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an archive")
    verify.add_argument(
        "--digest", metavar="SHA256", help="digest that 'create' printed, which you kept apart from the archive"
    )
    verify.flag("--json", "print the result as JSON")
    verify.set_defaults(handler=_verify)
    restore = actions.add_parser("restore", help="extract the files of an archive into a new folder")
    restore.add_argument("file", type=Path, metavar="FILE", help="an archive")
    restore.add_argument(
        "--to", type=Path, metavar="FOLDER", help="a new folder (default: restored/NAME in the project)"
    )
    restore.add_argument(
        "--digest", metavar="SHA256", help="digest that 'create' printed, which you kept apart from the archive"
    )
    restore.set_defaults(handler=_restore)


def _create(options: argparse.Namespace) -> int:
    from drivelab.archive.contents import contents
    from drivelab.archive.create import refuse_existing, write_archive
    from drivelab.plan.study import load_study

    output = options.output.absolute()
    refuse_existing(output)
    study = load_study(in_project(options.study))
    with _at_rest(study):
        items = contents(study, options.without)
        with _progress("archiving", sum(item.size_bytes for item in items)) as watch:
            written = write_archive(study, items, output, watch, options.without)
    _print_written(options.output, written)
    return 0


@contextmanager
def _at_rest(study: Study) -> Iterator[None]:
    """Keep a run from starting meanwhile; raises UserError if a process works on the study.

    Without a lock file of an earlier run no lock is held, because creating one would change the study. Archiving
    detects a run that starts then, or on another host, by the files that it writes.
    """
    from drivelab.recording.folders import RUN_LOCK
    from drivelab.run.progress import read_status, state_now

    lock, remedy = study.results / RUN_LOCK, "wait for it or stop it, then archive the study"
    with ExitStack() as stack:
        if lock.is_file():
            try:
                fcntl.flock(stack.enter_context(lock.open("rb")), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"study '{study.name}' is running and cannot be archived now; {remedy}") from None
        for status in read_status(study.results):
            if state_now(status) == "running":
                where = f"process {status.pid} on {status.host}" if status.host else f"process {status.pid}"
                raise UserError(
                    f"study '{study.name}' cannot be archived now: {status.stage} of {status.recording} is running "
                    f"({where}); {remedy}"
                )
        yield


def _print_written(output: Path, written: Written) -> None:
    amount, packed = (format_amount(size) for size in (written.size_bytes, output.absolute().stat().st_size))
    counts = f"{written.files} study files, {amount}, and {written.own_files} metadata files"
    print(f"{output}: {counts}, packed into {packed}")
    print(f"SHA-256 {written.digest}; keep it elsewhere: it reveals any alteration")


def _verify(options: argparse.Namespace) -> int:
    from drivelab.archive.verify import verify

    if options.digest and len(options.files) > 1:
        raise UserError("--digest belongs to one archive, but several are named; verify them one by one")
    verdicts = []
    for path in options.files:
        with _progress(f"verifying {path.name}", path.stat().st_size) as watch:
            verdicts.append(verify(path, options.digest, watch))
    if options.json:
        print_json([
            {"archive": str(verdict.path), "sha256": verdict.digest, "files": verdict.files,
             "own_files": verdict.own_files, "altered": verdict.altered, "since_measured": verdict.since_measured,
             "compared": verdict.compared, "compared_beside": verdict.beside}
            for verdict in verdicts
        ])  # fmt: skip
    for verdict in verdicts if not options.json else ():
        _print_verdict(verdict)
    return 1 if any(verdict.altered or verdict.since_measured for verdict in verdicts) else 0


def _print_verdict(verdict: Verdict) -> None:
    from drivelab.archive.create import SIDE_FILE

    for name, what in verdict.altered.items():
        print(f"{verdict.path}: {name}: {what}")
    for name, what in verdict.since_measured.items():
        print(f"{verdict.path}: {name}: {what} since it was measured; no result counts this recording")
    if not verdict.altered:
        check = "compare it with the digest that 'create' printed"
        if verdict.compared:
            check = "equal to the given digest"
        elif verdict.beside:
            check = f"equal to {verdict.path.name}{SIDE_FILE} beside it, which may have been changed too; {check}"
        counts = f"{verdict.files} study files and {verdict.own_files} metadata files"
        print(f"{verdict.path}: all files as archived, {counts}; SHA-256 {verdict.digest}, {check}")
        if not verdict.since_measured:
            print("All recordings are unaltered since they were measured.")
        print("Tables, figures and report are not checked; a restored study computes them again from its recordings.")


def _restore(options: argparse.Namespace) -> int:
    from drivelab.archive.contents import ELSEWHERE
    from drivelab.archive.restore import restore

    with _progress("verifying and restoring", 2 * options.file.stat().st_size) as watch:
        done = restore(options.file, options.to, options.digest, watch)
    folder = Path(os.path.relpath(done.folder))
    print(f"{folder}: {done.written} study files restored")
    if done.left_out:
        print(f"Skipped, because a study has no files of this kind: {some(done.left_out, _MOST_NAMED)}")
    if done.elsewhere:
        print(f"{done.elsewhere} files came from outside the publisher's project; they are in {folder / ELSEWHERE}")
    study = _study_in(done.folder)
    print("Tables, figures and report are not restored: drivelab computes them from the recordings.")
    print(f"Analyse it again, without measuring: {COMMAND} run {folder / (study or 'config/STUDY.yaml')}")
    print("To measure with it, set destructive: yes in its drive sheet and pass --yes.")
    return 0


def _study_in(folder: Path) -> Path | None:
    """Return the path of the restored study in its folder, or None if no study there has its name."""
    from drivelab.plan.places import RESTORED_MARKER
    from drivelab.plan.yaml_file import load_yaml

    name = json.loads((folder / RESTORED_MARKER).read_bytes())["study"]
    for path in sorted(folder.glob("config/*.y*ml")):
        with suppress(UserError):
            body = load_yaml(path)
            if "measurements" in body and body.get("name") == name:
                return path.relative_to(folder)
    return None


@contextmanager
def _progress(description: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    terminal = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal, **NO_REDIRECTION
    ) as bar:
        task = bar.add_task(description, total=total_bytes)
        yield lambda size: bar.advance(task, size)
