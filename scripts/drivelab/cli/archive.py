"""`drivelab archive`: a study in one file, as a crate in a folder, verified, and restored."""

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
from drivelab.cli.run import in_project
from drivelab.terminal import NO_REDIRECTION, console
from drivelab.units import format_amount
from drivelab.words import some

if TYPE_CHECKING:
    from drivelab.archive.create import Written
    from drivelab.archive.verify import Verdict
    from drivelab.config.study import Study

_NAMED = 5
"""Files that a sentence names."""


def add_parser(commands: Any) -> None:
    """Register `archive`."""
    one = commands.add_parser("archive", help="pack a study into one file, verify and restore it")
    actions = one.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, words, what in (
        ("create", "all of a study in one file, a tar in gzip with checksums", "FILE"),
        ("crate", "the same as a folder, an RO-Crate", "FOLDER"),
    ):
        create = actions.add_parser(name, help=words)
        create.add_argument("study", metavar="STUDY", help="study file")
        create.add_argument(
            "-o", "--output", type=Path, required=True, metavar=what, help="what is made; never overwritten"
        )
        create.add_argument("--license", metavar="NAME", help="of the data: a name of the SPDX list, or a URL")
        create.add_argument(
            "--author", action="append", default=[], metavar="AUTHOR", help='"Name <ORCID>", repeatable'
        )
        create.add_argument("--date", help="of publication (default: when the last recording was finished)")
        create.add_argument("--without", action="append", default=[], choices=KINDS, help="leave out; repeatable")
        create.set_defaults(handler=_create, folder=name == "crate")
    check = actions.add_parser("verify", help="whether archives are as they were written, to the byte; status 1 if not")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an archive, or a folder that is a crate")
    check.add_argument("--digest", metavar="SHA256", help="that 'create' printed, kept apart from the archive")
    check.add_argument("--json", action="store_true", help="print what was found as JSON")
    check.set_defaults(handler=_verify)
    back = actions.add_parser("restore", help="put the files of an archive into a folder of their own")
    back.add_argument("file", type=Path, metavar="FILE", help="an archive")
    back.add_argument("--to", type=Path, metavar="FOLDER", help="a new folder (default: restored/NAME of the project)")
    back.add_argument("--digest", metavar="SHA256", help="that 'create' printed, kept apart from the archive")
    back.set_defaults(handler=_restore)


def _create(options: argparse.Namespace) -> int:
    from drivelab.archive.contents import contents
    from drivelab.archive.create import refuse_existing, write_archive, write_folder
    from drivelab.archive.publication import publication
    from drivelab.config.study import load_study

    output = options.output.absolute()
    published = publication(options.author, options.license, options.date)
    refuse_existing(output)
    study = load_study(in_project(options.study))
    write = write_folder if options.folder else write_archive
    with _at_rest(study):
        items = contents(study, options.without)
        with _progress("archiving", sum(one.size_bytes for one in items)) as watch:
            written = write(study, items, output, published, watch, options.without)
    _tell(options.output, written, options.folder)
    return 0


@contextmanager
def _at_rest(study: Study) -> Iterator[None]:
    """Keep `drivelab run` from beginning meanwhile; raises UserError where anything is at work on the study.

    Where no run has left its lock there is none to hold, as making one would be a change of the study. What begins
    then, or on another host, is found by what it writes.
    """
    from drivelab.errors import UserError
    from drivelab.recording.places import RUN_LOCK
    from drivelab.stages import locks
    from drivelab.stages.progress import read_status, state_now

    lock, remedy = study.results / RUN_LOCK, "wait for it, or end it first, and archive the study then"
    with ExitStack() as stack:
        if lock.is_file():
            try:
                fcntl.flock(stack.enter_context(lock.open("rb")), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"study '{study.name}' is being run, and cannot be archived; {remedy}") from None
        for one in read_status(study.results):
            if state_now(one) == "running":
                where = f"process {one.pid} on {one.host}" if one.host else f"process {one.pid}"
                raise UserError(
                    f"study '{study.name}' is at work: {one.stage} of {one.recording} is running ({where}), so that "
                    f"the study cannot be archived; {remedy}"
                )
        if (pid := locks.at_work(study.path)) is not None:
            raise UserError(
                f"study '{study.name}' is at work: Snakemake (process {pid}) runs it, so that the study cannot be "
                f"archived; {remedy}"
            )
        yield


def _tell(output: Path, written: Written, folder: bool) -> None:
    for name, what in written.altered.items():
        print(f"{name}: {what} since it was measured; the recording is archived as it is")
    packed = "" if folder else f", packed into {format_amount(output.absolute().stat().st_size)}"
    amount = format_amount(written.size_bytes)
    print(f"{output}: {written.files} files of the study, {amount}, and {written.own_files} about it{packed}")
    print(f"SHA-256 {'of SHA256SUMS ' * folder}{written.digest}; keep it apart, it tells of any alteration")


def _verify(options: argparse.Namespace) -> int:
    from drivelab.archive.verify import verify

    if options.digest and len(options.files) > 1:
        from drivelab.errors import UserError

        raise UserError("--digest is of one archive, several are named; verify them one by one")
    verdicts = []
    for path in options.files:
        with _progress(f"verifying {path.name}", path.stat().st_size) as watch:
            verdicts.append(verify(path, options.digest, watch))
    if options.json:
        facts = [
            {"archive": str(one.path), "sha256": one.digest, "files": one.files, "own_files": one.own_files,
             "altered": one.altered, "compared": one.compared}
            for one in verdicts
        ]  # fmt: skip
        print(json.dumps(facts, indent=1))
    else:
        for one in verdicts:
            _tell_verdict(one)
    return 1 if any(one.altered for one in verdicts) else 0


def _tell_verdict(verdict: Verdict) -> None:
    for name, what in verdict.altered.items():
        print(f"{verdict.path}: {name}: {what}")
    if not verdict.altered:
        apart = "and by the one kept apart" if verdict.compared else "compare it with the one that was printed"
        counts = f"{verdict.files} files of the study and {verdict.own_files} about it"
        print(f"{verdict.path}: as it was written, {counts}; SHA-256 {verdict.digest}, {apart}")


def _restore(options: argparse.Namespace) -> int:
    from drivelab.archive.contents import ELSEWHERE
    from drivelab.archive.restore import restore

    with _progress("verifying and restoring", 2 * options.file.stat().st_size) as watch:
        done = restore(options.file, options.to, options.digest, watch)
    folder = Path(os.path.relpath(done.folder))
    print(f"{folder}: {done.written} files of the study restored, {done.there} were there already")
    if done.left_out:
        print(f"Left out, because a study has no files of this kind: {some(done.left_out, _NAMED)}")
    if done.elsewhere:
        print(f"{done.elsewhere} files came from outside the publisher's project; they are in {folder / ELSEWHERE}")
    study = _study_in(done.folder)
    print(f"Analyse it again without measuring: drivelab run {folder / (study or 'config/STUDY.yaml')}")
    print("To measure with it, enter destructive: yes in its drive sheet, and give consent with --yes.")
    return 0


def _study_in(folder: Path) -> Path | None:
    """Return the path of the restored study in its folder, or None if no study there has the archive's name."""
    from drivelab.config.restored import MARKER
    from drivelab.config.yaml_file import load_yaml
    from drivelab.errors import UserError

    wanted = json.loads((folder / MARKER).read_bytes())["study"]
    for path in sorted(folder.glob("config/*.y*ml")):
        with suppress(UserError):
            body = load_yaml(path)
            if "measurements" in body and body.get("name") == wanted:
                return path.relative_to(folder)
    return None


@contextmanager
def _progress(words: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, silence elsewhere."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    terminal = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal, **NO_REDIRECTION
    ) as bar:
        task = bar.add_task(words, total=total_bytes)
        yield lambda size: bar.advance(task, size)
