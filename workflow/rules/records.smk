import hashlib
import os
from pathlib import Path

import snakemake.workflow as of_snakemake
from snakemake.persistence import NO_PARAMS_CHANGE, RECORD_FORMAT_VERSION, ParamsChange
from snakemake.persistence.file import FilePersistence


class Records(FilePersistence):
    """Snakemake's records of what files were made with, which must be of these very files.

    Snakemake leaves a file alone of which it has no record, or none that it can read, and takes any file for the one
    that the record speaks of. After the loss of `.snakemake`, under another version, or where two checkouts share
    results, a table of other parameters or code would stay. An analysis, whose rule carries a digest of its code,
    costs seconds: it is made again.
    """

    def has_metadata(self, job):
        return True

    def has_outdated_metadata(self, job):
        return False

    def input_changed(self, job, file=None):
        return [] if self._uses_drive(job) else super().input_changed(job, file)

    def params_changed(self, job, file=None):
        if self._uses_drive(job):
            return NO_PARAMS_CHANGE
        changes = super().params_changed(job, file)
        outputs = job.output if file is None else [file]
        if "code" in job.rule.params.keys() and not all(self._speaks_of(job, path) for path in outputs):
            changes |= ParamsChange(only_old={"no record of these files"}, files=set(outputs))
        return changes

    @staticmethod
    def _uses_drive(job) -> bool:
        """Whether it leads to a measurement: what that depends on is in the digest of its path.

        A plan also says what changes no measurement, such as limits of taint and the path of the drive. Written anew
        because of those, it would have the drive measured anew.
        """
        return job.rule.name in ("plan", "capture") or bool({"plan", "plans"} & set(job.rule.input.keys()))

    def _speaks_of(self, job, path) -> bool:
        """Whether the record of an output is of the file that is there, and of the recording that it was made from.

        Archives may cut times to whole seconds. A recording that is copied there keeps the time of its making, which
        may be before that of tables of the one that it replaces.
        """
        record = self.metadata(path)
        if record is None or record.record_format_version != RECORD_FORMAT_VERSION:
            return False
        if not os.path.exists(path) or abs(os.path.getmtime(path) - record.endtime) >= 1:
            return not os.path.exists(path)  # a file that is missing is seen by Snakemake
        manifest = job.input.get("manifest")
        known = (record.input_checksums or {}).get(manifest)
        if known is None or not os.path.exists(manifest):
            return True
        return known == "sha256:" + hashlib.sha256(Path(manifest).read_bytes()).hexdigest()


of_snakemake.FilePersistence = Records
