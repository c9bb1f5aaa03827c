"""A study whose jobs are sent to a cluster: what `drivelab run` does otherwise there."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from drivelab import parent
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.stages.planning import Campaign

_PACKAGES = Path(sys.prefix) / "cluster"
"""Where './drivelab setup cluster' puts the executor, out of the way of studies that are run here."""
_CHAINS = ("rule_chain_", "rule_drive_")
"""How the comment of a submission begins that uses a drive: a chain, and a drive of a fleet with all its chains."""
_SQUEUE = ("squeue", "--me", "--noheader", "--format", "%i|%T|%j|%Z|%k")


class Submission:
    """Snakemake with the profile of a cluster."""

    def __init__(self, profile: Path, campaign: Campaign) -> None:
        """Raises UserError where the profile is none, or its executor is not installed."""
        self._is_slurm = load_yaml(profile / "config.yaml").get("executor") == "slurm"
        if self._is_slurm and not (_PACKAGES / "stamp").exists():
            raise UserError(
                f"{profile}: jobs are given to Slurm by packages that are not installed; run './drivelab setup cluster'"
            )
        self._profile = profile
        # Slurm's jobs bear it, so that those of a run that was killed are known again.
        self._prefix = f"drivelab-{re.sub('[^A-Za-z0-9-]', '-', campaign.study.name)}"[:50]

    def arguments(self, cores: int) -> list[str]:
        """Of snakemake; `cores` are for what runs here."""
        named = ["--slurm-jobname-prefix", self._prefix] if self._is_slurm else []
        return ["--profile", str(self._profile), "--local-cores", str(cores), *named]

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """With the executor's packages."""
        before = environment.get("PYTHONPATH")
        return {**environment, "PYTHONPATH": f"{_PACKAGES}:{before}" if before else str(_PACKAGES)}

    def clear_queue(self) -> list[str]:
        """Cancel what a killed run has left in the queue but for chains at work, which go on; says so in sentences.

        Two analyses of the same would write the same files, and a chain that has not begun is submitted again.
        """
        jobs = self._queue()
        at_work = [job for job, is_at_work in jobs.items() if is_at_work]
        others = [job for job in jobs if job not in at_work]
        said = []
        if others:
            parent.run(["scancel", *others])
            said.append(f"Left in the queue by a run that was killed, and cancelled: jobs {', '.join(others)}.")
        if at_work:
            said.append(f"Still at work from a run that was killed, and waited for: jobs {', '.join(at_work)}.")
        return said

    def cancel(self) -> list[str]:
        """Cancel all that this run has in the queue, chains at work too; says so in a sentence.

        An interrupted Snakemake leaves those there whose state it is just asking for.
        """
        try:
            jobs = list(self._queue())
        except UserError as error:
            return [f"What is in the queue was not cancelled: {error}"]
        if not jobs:
            return []
        parent.run(["scancel", *jobs])
        return [f"Cancelled in Slurm: jobs {', '.join(jobs)}."]

    def _queue(self) -> dict[str, bool]:
        """Jobs of the study that have not ended, and whether each is a chain at work.

        Raises UserError where Slurm does not answer.
        """
        if not self._is_slurm:
            return {}
        done = parent.run(_SQUEUE)
        if done.returncode != 0:
            words = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise UserError(f"Slurm does not answer ({words}); see that 'squeue' works here, and run again")
        jobs = {}
        for line in done.stdout.splitlines():
            job, state, name, folder, comment = line.split("|", 4)
            ours = re.fullmatch(rf"{self._prefix}_[0-9a-f-]{{36}}", name) and Path(folder) == Path.cwd()
            if ours and state != "COMPLETING":
                jobs[job] = comment.startswith(_CHAINS) and state == "RUNNING"
        return jobs
