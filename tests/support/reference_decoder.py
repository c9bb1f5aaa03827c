"""A slow decoder of block traces to check the fast one against: lists, linear searches, no thought for speed.

Written after kernel/trace/blktrace.c and block/blk-{core,mq,merge,flush}.c, without regard to the fast decoder. Places
are bytes from the start of the device, times ns since the first event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_records import Event, cpu_files, raw_records
from reference_rows import Dispatch, Row, Segment, SequenceEnd

NAME_BYTES = 16
"""Of a process name with its zero, TASK_COMM_LEN."""
ZONE_MANAGEMENT = {"zone-reset", "zone-reset-all", "zone-open", "zone-finish", "zone-close"}


@dataclass
class Decoder:
    rows: list[Row] = field(default_factory=list)
    queued: dict[str, list[Segment]] = field(default_factory=dict)
    in_flight: list[Dispatch] = field(default_factory=list)
    empty_flushes: list[Row] = field(default_factory=list)
    device_flushes: list[int] = field(default_factory=list)
    """Dispatch times of flush requests in flight."""
    last_flush_ns: int | None = None
    """Dispatch time of the flush request that was completed last."""
    sequence_ends: list[SequenceEnd] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    dispatches: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    unmatched: Counter[str] = field(default_factory=Counter)

    def take(self, event: Event) -> None:
        if "notify" in event.is_:
            if event.number == 0:
                name = event.payload[: NAME_BYTES - 1].split(b"\0")[0]
                self.names[event.pid] = name.decode(errors="replace")
            return
        self.counts["passthrough"] += "passthrough" in event.is_
        if event.is_ & {"passthrough", *ZONE_MANAGEMENT}:
            return
        steps: dict[str, Callable[[Event], None]] = {
            "Q": self._queue, "X": self._split, "M": self._merge, "F": self._merge,
            "D": self._dispatch, "R": self._requeue, "C": self._complete,
        }  # fmt: skip
        if event.letter in steps:
            steps[event.letter](event)

    def _list(self, event: Event) -> list[Segment]:
        return self.queued.setdefault(event.direction, [])

    def _queue(self, event: Event) -> None:
        row = Row(event, self.names.get(event.pid, ""), event.length)
        self.rows.append(row)
        if event.length == 0:
            self.empty_flushes.append(row)
            return
        self._list(event).append(Segment(row, event.begin, event.end))
        place = (event.direction, event.begin)
        self.sequence_ends = [end for end in self.sequence_ends if (end.direction, end.begin) != place]

    def _split(self, event: Event) -> None:
        if len(event.payload) < 8:
            return
        at = 512 * int.from_bytes(event.payload[:8], "big")
        fits = [one for one in self._list(event) if one.begin == event.begin and one.begin < at < one.end]
        expected = [one for one in fits if event.length in (one.end - one.begin, at - one.begin)]
        for one in (expected or fits)[:1]:
            queue = self._list(event)
            # A bio of its own from now on, which nothing has been said of.
            queue.insert(queue.index(one) + 1, Segment(one.row, at, one.end))
            one.end = at

    def _merge(self, event: Event) -> None:
        unmarked = [one for one in self._list(event) if one.begin == event.begin and not one.merged]
        exact = [one for one in unmarked if one.end == event.end]
        # Merging follows at once on queueing, so it is the last one.
        for one in (exact or unmarked)[-1:]:
            one.merged = True

    def _dispatch(self, event: Event) -> None:
        if event.is_device_flush:
            self.counts["device_flushes"] += 1
            self.device_flushes.append(event.time_ns)
            return
        if event.length == 0:
            return
        queue = self._list(event)
        members = tiling(queue, event.begin, event.end, 1)
        if members is None:
            members = tiling(queue, event.begin, event.end, None)
        if members is None:
            members = self._ranges(event)
        if members is None:
            members = self._greedy(event)
        for one in members:
            if one in queue:
                queue.remove(one)
            one.first = one.begin
            row = one.row
            row.pieces += 1
            if row.dispatch_ns is None:
                row.dispatch_ns, row.dispatch_id = event.time_ns, self.dispatches
        self.dispatches += bool(members)
        self.in_flight.append(Dispatch(event.direction, event.begin, event.end, members))

    def _ranges(self, event: Event) -> list[Segment] | None:
        """A discard of several ranges, which the kernel merges without an event (bio_attempt_discard_merge).

        It happens in the plug of a process: to the first come those that the process queued next, whole, wherever
        they lie.
        """
        queue = self._list(event)
        first = next((one for one in queue if one.begin == event.begin), None)
        if event.direction != "discard" or first is None:
            return None
        pid = first.row.event.pid
        members, left = [], event.length
        for one in sorted(queue, key=lambda one: one.number):
            if left > 0 and one.number >= first.number and one.row.event.pid == pid:
                members.append(one)
                left -= one.end - one.begin
        return members if left == 0 else None

    def _greedy(self, event: Event) -> list[Segment]:
        members: list[Segment] = []
        at, queue = event.begin, self._list(event)
        while at < event.end:
            one = next((one for one in queue if one.begin == at and one not in members), None)
            if one is None:
                self.unmatched["dispatches"] += 1
                break
            at = min(one.end, event.end)
            if at < one.end:
                members.append(Segment(one.row, one.begin, at, one.merged))
                queue[queue.index(one)] = Segment(one.row, at, one.end)
            else:
                members.append(one)
        return members

    def _requeue(self, event: Event) -> None:
        if event.is_device_flush:
            # With none in flight it was refused: the kernel makes these requests by itself, nothing else tells of one.
            self.device_flushes[:1] = []
            return
        found = [one for one in self.in_flight if (one.direction, one.begin) == (event.direction, event.begin)]
        undone = next((one for one in found if one.end == event.end), found[0] if found else None)
        if undone is None:
            # A driver that has no room sends a request back before its dispatch is traced (scsi_queue_rq).
            refused = any(one.begin == event.begin for one in self._list(event))
            self.unmatched["requeues"] += not refused
            return
        self.in_flight.remove(undone)
        for one in undone.members:
            self._list(event).insert(0, one)
            one.number = Segment(one.row, 0, 0).number
            row = one.row
            row.requeues += 1
            # What a partial completion has done of a piece stays done.
            row.pieces -= one.begin == one.first
            if row.pieces == 0:
                row.dispatch_ns = row.dispatch_id = None

    def _complete(self, event: Event) -> None:
        if event.is_device_flush:
            if self.device_flushes:
                self.last_flush_ns = self.device_flushes.pop(0)
            else:
                self.unmatched["completions"] += 1
        elif event.length == 0:
            self._complete_sequence(event)
        else:
            self._complete_data(event)

    def _complete_data(self, event: Event) -> None:
        found = [one for one in self.in_flight if (one.direction, one.begin) == (event.direction, event.begin)]
        exact = [one for one in found if one.end == event.end]
        for dispatch in (exact or [one for one in found if one.end > event.end])[:1]:
            left = event.length
            for one in list(dispatch.members):
                # A partial completion ends the bios that come first (blk_update_request), with its error.
                done = min(one.end - one.begin, left)
                left -= done
                if done > 0:
                    one.begin += done
                    one.row.finish(done, event)
                if one.begin == one.end:
                    dispatch.members.remove(one)
                    self._data_complete(one.row, one.first, event)
            dispatch.begin = event.end
            if dispatch.begin == dispatch.end:
                self.in_flight.remove(dispatch)
            return
        for one in self._list(event):
            # A device without a request queue, or a request that failed before it came to the driver.
            if (one.begin, one.end) == (event.begin, event.end) and one.row.pieces == 0:
                self._list(event).remove(one)
                one.row.finish(event.length, event)
                self._data_complete(one.row, one.begin, event)
                return
        self.unmatched["completions"] += 1

    def _data_complete(self, row: Row, begin: int, event: Event) -> None:
        """Each part of a split flush or FUA write is a request with a sequence, and a sequence's end, of its own."""
        if row.event.is_ & {"flush", "fua"}:
            # The end bears the flags of the data's completion: it is the same request. Those of the queued bio may
            # differ, blk_insert_flush sets SYNC.
            self.sequence_ends.append(SequenceEnd(row.event.direction, begin, event.is_ & {"sync", "meta"}, row))

    def _complete_sequence(self, event: Event) -> None:
        here = [end for end in self.sequence_ends if (end.direction, end.begin) == (event.direction, event.begin)]
        alike = [end for end in here if end.flags == event.is_ & {"sync", "meta"}]
        if not alike and self.empty_flushes:
            row = self.empty_flushes.pop(0)
            row.finish(0, event)
            if self.last_flush_ns is not None and self.last_flush_ns >= row.event.time_ns:
                row.dispatch_ns = self.last_flush_ns
        elif alike or here:
            end = (alike or here)[-1]
            self.sequence_ends.remove(end)
            end.row.finish(0, event)
        else:
            self.unmatched["completions"] += 1

    def finish(self) -> None:
        for row in self.rows:
            if row.complete_ns is None:
                self.unmatched["undispatched" if row.dispatch_ns is None else "uncompleted"] += 1


def tiling(queue: list[Segment], begin: int, end: int, unmarked: int | None) -> list[Segment] | None:
    """The first exact tiling of [begin, end), depth first, with so many unmarked segments (None: any number)."""
    hopeless: set[tuple[int, int]] = set()

    def rest(at: int, used: int) -> list[Segment] | None:
        if at == end:
            return [] if unmarked is None or used == unmarked else None
        if (at, used) in hopeless:
            return None
        for one in queue:
            count = 0 if unmarked is None else used + (not one.merged)
            if one.begin == at and one.end <= end and (unmarked is None or count <= unmarked):
                found = rest(one.end, count)
                if found is not None:
                    return [one, *found]
        hopeless.add((at, used))
        return None

    return rest(begin, 0)


def decode_slowly(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows with the columns of REQUESTS in the order of their queueing, and the summary; kinds that are 0 are left out.

    Raises ValueError when a file holds something else than records.
    """
    lost: Counter[str] = Counter()
    events: list[tuple[int, int, int, Event]] = []
    files = cpu_files(folder)
    for cpu, path in files.items():
        data, end, last = path.read_bytes(), 0, None
        for at, sequence, event in raw_records(data):
            events.append((event.time_ns, cpu, at, event))
            end = at
            if "notify" not in event.is_:
                lost["sequence_gaps"] += 0 if last is None else max(0, sequence - last - 1)
                last = sequence
        lost["truncated_files"] += end < len(data)
    lost["missing_cpu_files"] = max(files) + 1 - len(files)
    events.sort(key=lambda entry: entry[:3])
    decoder = Decoder()
    for time_ns, _, _, event in events:
        event.time_ns = time_ns - events[0][0]
        decoder.take(event)
    decoder.finish()
    summary = {
        "events": len(events),
        "events_by_action": dict(Counter(event.letter for *_, event in events)),
        "requests": len(decoder.rows),
        "passthrough": decoder.counts["passthrough"],
        "device_flushes": decoder.counts["device_flushes"],
        "unmatched": {kind: count for kind, count in decoder.unmatched.items() if count},
        "lost": {kind: count for kind, count in lost.items() if count},
    }
    return [row.columns() for row in decoder.rows], summary
