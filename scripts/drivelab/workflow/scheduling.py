"""Resources of the workflow's jobs on a host or a cluster: places, cores, wall time, the drive's host."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from drivelab.campaign.estimate import assumed_mib_s
from drivelab.campaign.outlook import Estimates
from drivelab.campaign.planning import STAGES, Campaign
from drivelab.campaign.subjects import capacity_bytes_of
from drivelab.core.errors import UserError, suggestion
from drivelab.core.units import format_duration
from drivelab.plan.hosts import host_of, this_host
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST
from drivelab.run.progress import keeps_drive, read_status
from drivelab.workflow.cluster import Cluster, slurm_limits_min

LARGEST_BYTES = 32 * 10**12
"""Capacity assumed for a drive on another host, where drivelab cannot read it: more than most drives have."""
_MARGIN = 1.5
_START_MIN = 10.0
"""Additional time of a job on a slow file system."""
_NOTHING: list[Mapping[str, Any]] = []
"""Steps of a plan that only purges and preconditions; a single object, because estimates are cached by identity."""

Use = int | str | Callable[..., int | str]


class Scheduling:
    """Resources, priorities and limits of a study's jobs, for the workflow's rules."""

    def __init__(self, campaign: Campaign, cluster: Cluster | None = None) -> None:
        """With a `cluster`, jobs carry its host and time options; raises UserError if the study does not fit it."""
        self.campaign, self.cluster = campaign, cluster
        if cluster is not None:
            cluster.refuse(campaign)

    def refuse_in_slurm(self, partition: str | None = None) -> None:
        """Raise UserError for a host that Slurm does not know, or for a chain that takes longer than Slurm permits.

        Slurm would keep the chain in its queue without a message. `partition` is as for `slurm_limits_min`.
        """
        if self.cluster is None or not (limits_min := slurm_limits_min(partition)):
            return
        for plan in self.campaign.to_do:
            host, needed_min = host_of(plan), self._chain_min(plan)
            is_pinned = host != ANY_HOST and "{host}" in self.cluster.options
            if is_pinned and host not in limits_min:
                raise UserError(
                    f"drive '{plan.drive}' is to be measured on host '{host}', which Slurm does not know. In the drive "
                    f"sheet or the study, enter the name that 'sinfo --Node' prints: {suggestion(host, limits_min)}"
                )
            most_min = limits_min[host] if is_pinned else max(limits_min.values())
            if needed_min > most_min:
                raise UserError(
                    f"{plan.recording} may take {format_duration(60 * needed_min)}, but Slurm would end it after "
                    f"{format_duration(60 * most_min)}. In the profile's config.yaml, set 'slurm_partition' of "
                    "'default-resources' to a partition with more time ('sinfo' lists them), or shorten the measurement"
                )

    def limits(self) -> dict[str, int]:
        """Return Snakemake resources with their limits: a resource without a limit is unlimited."""
        places = {_name("host", host): limit for host, limit in self._hosts.items()}
        return places | {_name("drive", drive): 1 for drive in self._side_by_side}

    def cores(self, cores: int | None) -> int:
        """Return the cores of a measuring job: its share of all cores, so that no analysis disturbs it."""
        places = max(self._hosts.values(), default=1)
        return max(1, (cores or 1) // places)

    def priority(self, stage: str) -> Callable[[object], int]:
        """Return the priority of a stage: earlier chains first, then later stages, so that chains are not split."""
        place = STAGES.index(stage)
        plans_of = self._measured_with if stage == STAGES[-1] else lambda wildcards: [self._planned(wildcards)]
        return lambda wildcards: max(self._priority(plan, place) for plan in plans_of(wildcards))

    @property
    def first(self) -> int:
        """Priority above every chain except interrupted chains."""
        return len(STAGES) * (len(self.campaign.plans) + 1)

    def chain(self, stage: str, *, together: bool = False) -> dict[str, Use]:
        """Return the resources of a stage's job, which has the wildcards of a recording.

        They are: a place on the drive's host, the drive if the host measures several at a time, and the cluster's. The
        job that measures drives `together` has one place and all these drives.
        """
        plans_of = self._measured_with if together else lambda wildcards: [self._planned(wildcards)]
        uses = self._at_host()
        for drive in self._side_by_side:
            uses[_name("drive", drive)] = lambda wildcards, drive=drive: int(
                any(plan.sheet_drive == drive for plan in plans_of(wildcards))
            )
        if self.cluster is not None:
            uses |= {
                "gres": lambda wildcards, cluster=self.cluster: cluster.gres_of(self._planned(wildcards)),
                "slurm_extra": lambda wildcards, cluster=self.cluster: cluster.extra_of(
                    self._planned(wildcards), self._chain_min(self._planned(wildcards))
                ),
                "cpus_per_task": self.cluster.cpus_per_task,
                "runtime": lambda wildcards, attempt: (
                    attempt * max(self._job_min(plan, stage, together=together) for plan in plans_of(wildcards))
                ),
            }
        return uses

    def here(self) -> dict[str, int]:
        """Return the resources of a job that uses this host but no drive of the study: one place."""
        return {_name("host", host): 1 for host in self._hosts} if self.cluster is None else {}

    def _at_host(self) -> dict[str, Use]:
        """Return a place on the host of a job's plan; Snakemake evaluates a number much faster than a function."""
        if len(self._hosts) == 1:
            return {_name("host", host): 1 for host in self._hosts}
        return {
            _name("host", host): lambda wildcards, host=host: int(self._place(self._planned(wildcards)) == host)
            for host in self._hosts
        }

    def _place(self, plan: Plan) -> str:
        """Return the host that runs a plan; without a cluster, this host runs plans for any host."""
        host = host_of(plan)
        return this_host() if host == ANY_HOST and self.cluster is None else host

    @cached_property
    def _hosts(self) -> dict[str, int]:
        """Concurrent measurements by host: the strictest limit that applies to its drives."""
        limits: dict[str, int] = {}
        for plan in self.campaign.here:
            place, limit = self._place(plan), self.campaign.study.concurrency_of(host_of(plan))
            limits[place] = min(limit, limits.get(place, limit))
        return limits

    @cached_property
    def _side_by_side(self) -> list[str]:
        """Drives whose host measures several drives at a time; each drive has one job at a time."""
        used = [plan for plan in self.campaign.here if self._hosts[self._place(plan)] > 1]
        return list(dict.fromkeys(plan.sheet_drive for plan in used))

    def _planned(self, wildcards: Any) -> Plan:
        return self.campaign.by_recording[f"{wildcards.drive}/{wildcards.measurement}/{wildcards.key}"].plan

    def _measured_with(self, wildcards: Any) -> list[Plan]:
        """Return the plans of all drives that are measured at the same time as that of the wildcards."""
        plan = self._planned(wildcards)
        return self.campaign.together.get(plan.recording, [plan])

    def _priority(self, plan: Plan, place: int) -> int:
        order = -1 if plan.recording in self._interrupted else self.campaign.order(plan)
        return len(STAGES) * (len(self.campaign.plans) - order) + place

    @cached_property
    def _interrupted(self) -> set[str]:
        """Interrupted recordings that reserve their drives; they come first, whatever the study's order is now."""
        statuses = read_status(self.campaign.study.results)
        return {status.recording for status in statuses if keeps_drive(status)}

    def _chain_min(self, plan: Plan) -> int:
        """Return the wall time of a whole chain, which one submission holds."""
        return sum(self._runtime_min(plan, stage) for stage in STAGES)

    def _job_min(self, plan: Plan, stage: str, *, together: bool) -> int:
        """Return the wall time of a job; drives that are measured together have one job for it before their own."""
        if stage == "measure" and not together and "simultaneous" in plan.subject:
            return math.ceil(_START_MIN)
        return self._runtime_min(plan, stage)

    def _runtime_min(self, plan: Plan, stage: str) -> int:
        """Return the upper estimate with a margin; a measurement has time to purge and precondition again."""
        if stage != "measure":
            plan = replace(plan, subject={**plan.subject, "measure": _NOTHING})
        is_here = plan.virtual or host_of(plan) in (ANY_HOST, this_host())
        capacity_bytes = capacity_bytes_of(plan) if is_here else LARGEST_BYTES
        most_s = self._estimates.of(plan, capacity_bytes, assumed_mib_s(plan, None), None).most_s
        return math.ceil(_START_MIN + _MARGIN * most_s / 60)

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.campaign)


def _name(kind: str, name: str) -> str:
    return f"{kind}_{re.sub('[^A-Za-z0-9]', '_', name)}"
