"""Everything in drivelab that uses the inside of Snakemake.

Snakemake may change these classes in any release. So pyproject.toml admits only the tested minor version, and
tests/unit/workflow/test_snakemake_internals.py fails if one of them changed. Each function names the upstream issue
that would make it unnecessary. Only the Snakefile imports this module, because it imports Snakemake. `drivelab run`
runs it as a program to check the options of Snakemake before the study starts.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from snakemake.cli import parse_args
from snakemake.exceptions import CliException, WorkflowError
from snakemake.persistence import NO_PARAMS_CHANGE, RECORD_FORMAT_VERSION, MetadataRecord, ParamsChange
from snakemake.persistence.file import FilePersistence
from snakemake.script import PythonScript
from snakemake.settings.enums import PersistenceBackend

from drivelab.core.errors import UserError
from drivelab.core.forks import Forks
from drivelab.core.termination import end_in_thread

_ARCHIVED_S = 1.0
"""Largest difference between the times of a file and its record: archives may truncate times to whole seconds."""
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""JSON has these characters only in texts, so an escaped document means the same."""


@contextmanager
def user_errors() -> Iterator[None]:
    """Show a UserError as Snakemake shows mistakes in a workflow: without a traceback."""
    try:
        yield
    except UserError as error:
        raise WorkflowError(str(error)) from None


def prepare(workflow: Any, locks: Path) -> None:
    """Make Snakemake use `Records` with their locks in a folder, and write safe reports.

    Raises UserError for another persistence backend than files.
    """
    require_file_backend(workflow.workflow_settings.persistence_backend)
    gc.set_threshold(20_000)  # the default takes a tenth of the time between jobs, and half of the code's parsing
    Records.locks = locks
    vars(sys.modules["snakemake.workflow"])["FilePersistence"] = Records
    escape_texts()


def start(workflow: Any, imports: Sequence[str], warm_up: str) -> None:
    """Prepare a run before its first job; scripts run in forks of a process that has imported and used `imports`.

    `warm_up` as for `drivelab.core.forks.Forks`.
    """
    end_in_thread()
    if workflow.local_exec and workflow.is_main_process:
        run_in_forks(Forks(["snakemake.script", *imports], warm_up))
        lift_rate_limit(workflow.scheduler)


def run_in_forks(forks: Forks) -> None:
    """Make Snakemake run each Python script in a fork, which starts in milliseconds.

    Snakemake polls the resources of a script during its benchmark; a fork returns them at its end. Upstream: issue
    3143, scripts that share the time of their imports.
    """

    def execute_script(script: PythonScript, path: str, edit: bool = False) -> None:
        began_s = time.monotonic()
        used = forks.run(path)
        if (record := script.bench_record) is not None:
            record.running_time = time.monotonic() - began_s
            record.cpu_time, record.cpu_usage = used.cpu_s, 100 * used.cpu_s  # cpu_usage: percent times seconds
            record.max_rss, record.io_in, record.io_out = used.most_mib, used.read_mib, used.written_mib
            record.data_collected = True

    PythonScript.execute_script = execute_script


def lift_rate_limit(scheduler: Any) -> None:
    """Let Snakemake start any number of jobs per second.

    With a limit, Snakemake polls once a second for each job that has ended. After some hours that takes a whole core of
    the measuring host. Upstream: pull request 3744; no option switches the limit off.
    """
    scheduler.job_rate_limiter = None


def require_file_backend(backend: PersistenceBackend) -> None:
    """Raise UserError unless Snakemake keeps its records in files, as `Records` replaces only that class."""
    if backend is not PersistenceBackend.FILE:
        raise UserError(
            f"Snakemake's persistence backend '{backend}' cannot be used. drivelab's study locks and its protection of "
            "finished measurements work with backend 'file' only. Remove --persistence-backend from the command line "
            "and from the Snakemake profile."
        )


class Records(FilePersistence):  # type: ignore[misc]  # Snakemake ships no type information
    """Records in `.snakemake`, used only if they match the present file.

    Snakemake keeps a file without a readable record, and takes any present file for the recorded one. So a table made
    with other parameters or code would stay if `.snakemake` was lost, if the version of Snakemake changed, or if two
    checkouts share results. This class makes such a file again if its rule carries a digest of its code (an analysis,
    which takes seconds). Upstream: pull request 3014 only lists the files without a record.

    The locks are those of one study, in the folder `locks`. Upstream knows only locks for a whole working folder, and
    `--directory` for each study would change the meaning of every relative path in it (question in issue 1871).
    """

    locks: Path

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lockdir = str(self.locks)

    def _write_locks(self, lock_type: str, keys: Iterable[str]) -> None:
        Path(self._lockdir).mkdir(parents=True, exist_ok=True)
        super()._write_locks(lock_type, keys)

    def has_metadata(self, job: Any) -> bool:
        """Return True: `params_changed` handles files without a record."""
        return True

    def has_outdated_metadata(self, job: Any) -> bool:
        """Return False: `params_changed` handles records in another format."""
        return False

    async def incomplete(self, job: Any) -> list[Any]:
        """Return Snakemake's incomplete files, but none for a job that leads to a measurement.

        Such a job writes its files at once, and the next stage judges them. If Snakemake repeated the job because it
        was killed after that, it would not run the next stage, which takes the present file as `ancient`, nor anything
        that depends on it (DAG.update_needrun): the study would end without an error and without a report. Upstream
        has no issue for this yet.
        """
        return [] if _uses_drive(job) else list(await super().incomplete(job))

    def input_changed(self, job: Any, file: Any = None) -> Any:
        """Return Snakemake's changes, but none for a job that leads to a measurement."""
        return [] if _uses_drive(job) else super().input_changed(job, file)

    def params_changed(self, job: Any, file: Any = None) -> Any:
        """Return Snakemake's changes, plus a change for each analysis output without a matching record.

        A job that leads to a measurement has no change.
        """
        if _uses_drive(job):
            return NO_PARAMS_CHANGE
        is_judged = "code" in job.rule.params.keys()  # noqa: SIM118 - a list with names
        manifest = _Manifest(job.input.get("manifest"))
        changes = NO_PARAMS_CHANGE
        for path in job.output if file is None else [file]:  # one by one: Snakemake keeps few records in memory
            changes |= super().params_changed(job, path)
            if is_judged and not _matches(self.metadata(path), path, manifest):
                changes |= ParamsChange(only_old={"no record of this file"}, files={path})
        return changes


class _Manifest:
    """The manifest of the analysed recording, if the analysis has only one."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._checksum: str | None = None

    def matches(self, record: MetadataRecord) -> bool:
        """Return whether the output was made from this manifest; True if that is unknown."""
        known = (record.input_checksums or {}).get(self.path)
        if self.path is None or known is None:
            return True
        if self._checksum is None and Path(self.path).exists():
            self._checksum = "sha256:" + hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        return self._checksum in (None, known)


def _uses_drive(job: Any) -> bool:
    """Return whether a job leads to a measurement, which depends only on the digest in its path.

    A plan also contains facts that do not affect a measurement, such as taint limits and the drive's path. If a change
    of these rewrote the plan, Snakemake would measure the drive again.
    """
    return job.rule.name in ("plan", "capture") or not {"plan", "plans"}.isdisjoint(job.rule.input.keys())


def _matches(record: MetadataRecord | None, path: str, manifest: _Manifest) -> bool:
    """Return whether the record of an output matches the present file and the present recording.

    A copied recording keeps its modification time, which may be earlier than the tables of the recording that it
    replaces. So the manifest is compared as well.
    """
    try:
        changed_s = Path(path).stat().st_mtime
    except FileNotFoundError:
        return True  # Snakemake sees that it is missing
    if record is None or record.record_format_version != RECORD_FORMAT_VERSION or record.endtime is None:
        return False
    return abs(changed_s - record.endtime) < _ARCHIVED_S and manifest.matches(record)


class _ScriptJson:
    """Replaces the module `json` in Snakemake's reporter."""

    @staticmethod
    def dumps(value: Any) -> str:
        """Return JSON that is safe inside a script element."""
        return json.dumps(value).translate(_ESCAPES)


def escape_texts() -> None:
    """Make Snakemake's own report safe for texts that users write.

    `snakemake --report` puts titles, parameters and paths as JSON into scripts of its page. There `</script>` in a text
    would end the script, and the browser would read the rest as HTML (HTML standard, section 4.12.1.3). Upstream has no
    issue for this yet. Raises RuntimeError if this Snakemake writes reports differently.
    """
    import snakemake.report.html_reporter as reporter
    import snakemake.report.html_reporter.data.results as results

    parts = f"{reporter.__name__}.data."
    for module in (reporter, *(module for name, module in sys.modules.items() if name.startswith(parts))):
        if getattr(module, "json", None) is json:
            vars(module)["json"] = _ScriptJson
    if not all(vars(module).get("json") is _ScriptJson for module in (reporter, results)):
        raise RuntimeError(
            "this version of Snakemake writes its report differently, so drivelab cannot escape its texts"
        )


def _main(arguments: list[str]) -> int:
    """Check the options of a Snakemake command, profiles included.

    If they are refused, print why and return 2. Snakemake itself reports other errors in the options.
    """
    with redirect_stderr(StringIO()):
        try:
            backend = parse_args(arguments)[1].persistence_backend
        except (SystemExit, CliException):
            return 0
    try:
        require_file_backend(backend)
    except UserError as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
