"""What each job of the workflow asks of the host, and of a cluster: places, cores, wall time, the drive's own host."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from drivelab.config.study import ANY_HOST
from drivelab.plan.plan import Plan
from drivelab.stages.cluster import Cluster
from drivelab.stages.estimate import assumed_mib_s
from drivelab.stages.outlook import Estimates
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of, is_recorded, this_host
from drivelab.stages.progress import keeps_drive, read_status

STAGES = ("purge", "precondition", "measure")
"""In the order of a chain: what is further on comes first."""
LARGEST_BYTES = 32 * 10**12
"""Capacity reckoned for a drive that is on another host, where nobody can look: more than most have."""
_MARGIN = 1.5
_START_MIN = 10.0
"""What a job needs besides, on a slow file system."""
_NOTHING: list[Mapping[str, Any]] = []
"""Steps of a plan that is purged and preconditioned alone; one object, as estimates are kept by it."""
_PART_CORES = 4
"""A process of the analysis takes some 250 MB, and a job of profiles/slurm has 2 GB."""
_ANALYSIS_MIN = 60
"""For the analysis of a drive within its part, as a job of the analysis has by profiles/slurm."""

Use = int | str | Callable[..., int | str]


class Scheduling:
    """Resources, priorities and limits of a study's jobs, for the workflow's rules."""

    def __init__(self, campaign: Campaign, cluster: Cluster | None = None) -> None:
        """With a `cluster` jobs say there where and how long they run; raises UserError for what it cannot do."""
        self.campaign, self.cluster = campaign, cluster
        if cluster is not None:
            cluster.refuse(campaign)

    def limits(self) -> dict[str, int]:
        """Snakemake resources with their limits: a resource without a limit is unlimited."""
        places = {_name("host", host): limit for host, limit in self._hosts.items()}
        return places | {_name("drive", drive): 1 for drive in self._side_by_side}

    def cores(self, cores: int | None) -> int:
        """Cores that a measuring job claims, so that no analysis disturbs it: its share of all there are."""
        places = max(self._hosts.values(), default=1)
        return max(1, (cores or 1) // places)

    def part_cores(self, cores: int | None) -> int:
        """Cores for the part of a fleet; on a cluster as many as keep within the memory of a job there."""
        return self.cores(cores) if self.cluster is None else min(self.cores(cores), _PART_CORES)

    def priority(self, stage: str) -> Callable[[object], int]:
        """Earlier chains come first, and within a chain what is further on: a chain goes on without a break."""
        place = STAGES.index(stage)
        return lambda wildcards: self._priority(self._planned(wildcards), place)

    def priority_together(self, recordings: Iterable[str]) -> int:
        """Of a job that measures several drives at the same time."""
        return max(self._priority(self.campaign.by_recording[one].plan, len(STAGES) - 1) for one in recordings)

    @property
    def first(self) -> int:
        """Above every chain but one that was interrupted."""
        return len(STAGES) * (len(self.campaign.plans) + 1)

    @property
    def priority_of_plan(self) -> int:
        """Above every chain there is."""
        return self.first + len(STAGES)

    def planning(self) -> dict[str, Use]:
        """Resources of the job that writes a plan: a place on the drive's host.

        By its priority all plans of a host are written before the first of its chains begins; that would be the one
        whose plan happens to be there, whatever the study's order.
        """
        return self._at_host(self._planned)

    def chain(self, stage: str) -> dict[str, Use]:
        """Resources of a stage: a place on the drive's host, there the drive if several are in use, and the cluster's.

        For jobs with the wildcards of a recording.
        """
        uses = self._at_host(self._planned)
        for drive in self._side_by_side:
            uses[_name("drive", drive)] = lambda wildcards, drive=drive: int(
                self._planned(wildcards).sheet_drive == drive
            )
        if self.cluster is not None:
            uses |= {
                "gres": lambda wildcards: self._gres(self._planned(wildcards)),
                "slurm_extra": lambda wildcards: self._extra(self._planned(wildcards)),
                "cpus_per_task": self.cluster.cpus_per_task,
                "runtime": lambda wildcards, attempt: attempt * self._runtime_min(self._planned(wildcards), stage),
            }
        return uses

    def together(self, recordings: Iterable[str]) -> dict[str, Use]:
        """Resources of a job that uses several drives of a host at the same time: one place there, and the drives."""
        plans = [self.campaign.by_recording[one].plan for one in recordings]
        uses: dict[str, Use] = {_name("host", self._place(plans[0])): 1}
        uses |= {_name("drive", plan.sheet_drive): 1 for plan in plans if plan.sheet_drive in self._side_by_side}
        if self.cluster is not None:
            longest_min = max(self._runtime_min(plan, "measure") for plan in plans)
            uses |= {
                "gres": self._gres(plans[0]),
                "slurm_extra": self._extra(plans[0]),
                "cpus_per_task": self.cluster.cpus_per_task,
                "runtime": lambda wildcards, attempt: attempt * longest_min,
            }
        return uses

    def part(self, of_drive: Callable[[str], Sequence[Plan]]) -> dict[str, Use]:
        """Resources of a job that carries out all plans of a drive, chain after chain, with the wildcard `drive`.

        A place on the drive's host from the first chain to the last, and of a cluster the time of those that are not
        recorded yet, one after another, and of the analysis. One job for each drive there is: drives are no resource.
        """

        def wall_min(drive: str) -> int:
            left = [plan for plan in of_drive(drive) if not is_recorded(plan)]
            return _ANALYSIS_MIN + sum(self._runtime_min(plan, stage) for plan in left for stage in STAGES)

        uses = self._at_host(lambda wildcards: of_drive(wildcards.drive)[0])
        if (cluster := self.cluster) is not None:
            uses |= {
                "gres": lambda wildcards: self._gres(of_drive(wildcards.drive)[0]),
                "slurm_extra": lambda wildcards: cluster.extra_of(
                    of_drive(wildcards.drive)[0], wall_min(wildcards.drive)
                ),
                "cpus_per_task": cluster.cpus_per_task,
                "runtime": lambda wildcards, attempt: attempt * wall_min(wildcards.drive),
            }
        return uses

    def here(self) -> dict[str, int]:
        """Resources of a job that keeps this host busy with no drive of the study: one of its places, whoever's."""
        return {_name("host", host): 1 for host in self._hosts} if self.cluster is None else {}

    def _at_host(self, plan_of: Callable[[Any], Plan]) -> dict[str, Use]:
        """A place on the host of the plan that a job is for."""
        return {
            _name("host", host): lambda wildcards, host=host: int(self._place(plan_of(wildcards)) == host)
            for host in self._hosts
        }

    def _place(self, plan: Plan) -> str:
        """Where a plan is carried out; what may be anywhere is, without a cluster."""
        host = host_of(plan)
        return this_host() if host == ANY_HOST and self.cluster is None else host

    @cached_property
    def _hosts(self) -> dict[str, int]:
        """Measurements at a time by host: as many as the least that is said of any of its drives."""
        found: dict[str, int] = {}
        for plan in self.campaign.here:
            place, limit = self._place(plan), self.campaign.study.concurrency_of(host_of(plan))
            found[place] = min(limit, found.get(place, limit))
        return found

    @cached_property
    def _side_by_side(self) -> list[str]:
        """Drives whose host measures several at once: one job for each."""
        used = [plan for plan in self.campaign.here if self._hosts[self._place(plan)] > 1]
        return list(dict.fromkeys(plan.sheet_drive for plan in used))

    def _planned(self, wildcards: Any) -> Plan:
        return self.campaign.by_recording[f"{wildcards.drive}/{wildcards.measurement}/{wildcards.key}"].plan

    def _priority(self, plan: Plan, place: int) -> int:
        order = -1 if plan.recording in self._interrupted else self.campaign.order(plan)
        return len(STAGES) * (len(self.campaign.plans) - order) + place

    @cached_property
    def _interrupted(self) -> set[str]:
        """Recordings that their drives are left to until they have gone on, whatever the order has become since."""
        found = read_status(self.campaign.study.results)
        return {status.recording for status in found if keeps_drive(status)}

    def _gres(self, plan: Plan) -> str:
        """The drive as a generic resource. Drives that are measured together have none: a job can name one alone."""
        assert self.cluster is not None
        return "" if "simultaneous" in plan.subject else self.cluster.gres_of(plan)

    def _extra(self, plan: Plan) -> str:
        """The same for all stages of a chain, or they could not be one submission."""
        assert self.cluster is not None
        return self.cluster.extra_of(plan, sum(self._runtime_min(plan, stage) for stage in STAGES))

    def _runtime_min(self, plan: Plan, stage: str) -> int:
        """At the most, with a margin: a measurement may have to purge and precondition anew, so it has time for all."""
        if stage != "measure":
            plan = replace(plan, subject={**plan.subject, "measure": _NOTHING})
        capacity_bytes = reckoned_capacity_bytes(self.campaign, plan)
        most_s = self._estimates.of(plan, capacity_bytes, assumed_mib_s(plan, None), None).most_s
        return math.ceil(_START_MIN + _MARGIN * most_s / 60)

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.campaign)


def reckoned_capacity_bytes(campaign: Campaign, plan: Plan) -> int:
    """Capacity of the drive of a plan, or the largest for a drive of another host."""
    if plan.virtual or host_of(plan) in (ANY_HOST, this_host()):
        return campaign.capacity_bytes(plan)
    return LARGEST_BYTES


def _name(kind: str, what: str) -> str:
    return f"{kind}_{re.sub('[^A-Za-z0-9]', '_', what)}"
