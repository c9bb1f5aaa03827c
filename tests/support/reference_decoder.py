"""A slow reference decoder of block traces, with lists and linear searches, to check the fast decoder.

Written from kernel/trace/blktrace.c and block/blk-{core,mq,merge,flush}.c, independently of the fast decoder. Positions
are bytes from the start of the device, times are ns since the first event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reference_records import Event, cpu_files, raw_records
from reference_rows import Dispatch, Row, Segment, SequenceEnd

NAME_BYTES = 16
"""Length of a process name with its final zero, TASK_COMM_LEN."""
ZONE_MANAGEMENT = {"zone-reset", "zone-reset-all", "zone-open", "zone-finish", "zone-close"}


@dataclass
class Decoder:
    from_dispatch: bool = False
    """Whether requests begin with their dispatch, because the capture has no queue events."""
    rows: list[Row] = field(default_factory=list)
    queued: dict[str, list[Segment]] = field(default_factory=dict)
    in_flight: list[Dispatch] = field(default_factory=list)
    empty_flushes: list[Row] = field(default_factory=list)
    device_flushes: list[int] = field(default_factory=list)
    """Dispatch times of flush requests in flight."""
    last_flush_ns: int | None = None
    """Dispatch time of the last completed flush request."""
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
        fits = [
            segment
            for segment in self._list(event)
            if segment.begin == event.begin and segment.begin < at < segment.end
        ]
        expected = [segment for segment in fits if event.length in (segment.end - segment.begin, at - segment.begin)]
        for segment in (expected or fits)[:1]:
            queue = self._list(event)
            # From now on this is another bio, without any events yet.
            queue.insert(queue.index(segment) + 1, Segment(segment.row, at, segment.end))
            segment.end = at

    def _merge(self, event: Event) -> None:
        unmarked = [segment for segment in self._list(event) if segment.begin == event.begin and not segment.merged]
        exact = [segment for segment in unmarked if segment.end == event.end]
        # A merge follows directly after queueing, so the last one is the merged one.
        for segment in (exact or unmarked)[-1:]:
            segment.merged = True

    def _flush(self, *, dispatched: bool) -> Row | None:
        return next((row for row in self.empty_flushes if (row.dispatch_ns is not None) == dispatched), None)

    def _begin(self, event: Event) -> None:
        """Queue a request at its dispatch; any process may dispatch it."""
        self._queue(replace(event, pid=-1, cpu=-1))
        self.rows[-1].process = ""

    def _dispatch(self, event: Event) -> None:
        if event.is_device_flush:
            self.counts["device_flushes"] += 1
            if self.from_dispatch:
                if self._flush(dispatched=False) is None:
                    self._begin(event)
                row = self._flush(dispatched=False)
                assert row is not None
                row.dispatch_ns = event.time_ns
                return
            self.device_flushes.append(event.time_ns)
            return
        if event.length == 0:
            return
        queue = self._list(event)
        if self.from_dispatch and all(segment.begin != event.begin for segment in queue):
            self._begin(event)
        members = tiling(queue, event.begin, event.end, 1)
        if members is None:
            members = tiling(queue, event.begin, event.end, None)
        if members is None:
            members = self._ranges(event)
        if members is None:
            members = self._greedy(event)
        for segment in members:
            if segment in queue:
                queue.remove(segment)
            segment.first = segment.begin
            row = segment.row
            row.pieces += 1
            if row.dispatch_ns is None:
                row.dispatch_ns, row.dispatch_id = event.time_ns, self.dispatches
        self.dispatches += bool(members)
        self.in_flight.append(Dispatch(event.direction, event.begin, event.end, members))

    def _ranges(self, event: Event) -> list[Segment] | None:
        """Return the members of a discard of several ranges, or None.

        The kernel merges these without an event (bio_attempt_discard_merge), in the plug of a process: the bios that
        the process queues next are added to the first, whole and at any position.
        """
        queue = self._list(event)
        first = next((segment for segment in queue if segment.begin == event.begin), None)
        if event.direction != "discard" or first is None:
            return None
        pid = first.row.event.pid
        members, left = [], event.length
        for segment in sorted(queue, key=lambda segment: segment.number):
            if left > 0 and segment.number >= first.number and segment.row.event.pid == pid:
                members.append(segment)
                left -= segment.end - segment.begin
        return members if left == 0 else None

    def _greedy(self, event: Event) -> list[Segment]:
        members: list[Segment] = []
        at, queue = event.begin, self._list(event)
        while at < event.end:
            segment = next((segment for segment in queue if segment.begin == at and segment not in members), None)
            if segment is None:
                self.unmatched["dispatches"] += 1
                break
            at = min(segment.end, event.end)
            if at < segment.end:
                members.append(Segment(segment.row, segment.begin, at, segment.merged))
                queue[queue.index(segment)] = Segment(segment.row, at, segment.end)
            else:
                members.append(segment)
        return members

    def _requeue(self, event: Event) -> None:
        if event.is_device_flush:
            row = self._flush(dispatched=True) if self.from_dispatch else None
            if row is not None:
                row.dispatch_ns, row.requeues = None, row.requeues + 1
            # With none in flight, the driver refused it: the kernel creates these requests itself, without other
            # events.
            self.device_flushes[:1] = []
            return
        candidates = [
            dispatch
            for dispatch in self.in_flight
            if (dispatch.direction, dispatch.begin) == (event.direction, event.begin)
        ]
        exact = (dispatch for dispatch in candidates if dispatch.end == event.end)
        undone = next(exact, candidates[0] if candidates else None)
        if undone is None:
            # A busy driver returns a request before its dispatch is traced (scsi_queue_rq).
            refused = any(segment.begin == event.begin for segment in self._list(event))
            self.unmatched["requeues"] += not refused
            return
        self.in_flight.remove(undone)
        for segment in undone.members:
            self._list(event).insert(0, segment)
            segment.number = Segment(segment.row, 0, 0).number
            row = segment.row
            row.requeues += 1
            # The completed part of a piece stays complete.
            row.pieces -= segment.begin == segment.first
            if row.pieces == 0:
                row.dispatch_ns = row.dispatch_id = None

    def _complete(self, event: Event) -> None:
        if self.from_dispatch and event.length == 0:
            row = self._flush(dispatched=True)
            if event.is_device_flush and row is not None:
                self.empty_flushes.remove(row)
                row.finish(0, event)
            self.unmatched["completions"] += event.is_device_flush and row is None
        elif event.is_device_flush:
            if self.device_flushes:
                self.last_flush_ns = self.device_flushes.pop(0)
            else:
                self.unmatched["completions"] += 1
        elif event.length == 0:
            self._complete_sequence(event)
        else:
            self._complete_data(event)

    def _complete_data(self, event: Event) -> None:
        candidates = [
            dispatch
            for dispatch in self.in_flight
            if (dispatch.direction, dispatch.begin) == (event.direction, event.begin)
        ]
        exact = [dispatch for dispatch in candidates if dispatch.end == event.end]
        for dispatch in (exact or [dispatch for dispatch in candidates if dispatch.end > event.end])[:1]:
            left = event.length
            for segment in list(dispatch.members):
                # A partial completion ends the first bios (blk_update_request), with its error.
                done = min(segment.end - segment.begin, left)
                left -= done
                if done > 0:
                    segment.begin += done
                    segment.row.finish(done, event)
                if segment.begin == segment.end:
                    dispatch.members.remove(segment)
                    self._data_complete(segment.row, segment.first, event)
            dispatch.begin = event.end
            if dispatch.begin == dispatch.end:
                self.in_flight.remove(dispatch)
            return
        for segment in self._list(event):
            # A device without a request queue, or a request that failed before it reached the driver.
            if (segment.begin, segment.end) == (event.begin, event.end) and segment.row.pieces == 0:
                self._list(event).remove(segment)
                segment.row.finish(event.length, event)
                self._data_complete(segment.row, segment.begin, event)
                return
        self.unmatched["completions"] += 1

    def _data_complete(self, row: Row, begin: int, event: Event) -> None:
        """Record the expected sequence end: each part of a split flush or FUA write has its own sequence and end."""
        if row.event.is_ & {"flush", "fua"} and not self.from_dispatch:
            # The end has the flags of the data's completion, because it is the same request. The queued bio's flags may
            # differ: blk_insert_flush sets SYNC.
            self.sequence_ends.append(SequenceEnd(row.event.direction, begin, event.is_ & {"sync", "meta"}, row))

    def _complete_sequence(self, event: Event) -> None:
        candidates = [end for end in self.sequence_ends if (end.direction, end.begin) == (event.direction, event.begin)]
        matching = [end for end in candidates if end.flags == event.is_ & {"sync", "meta"}]
        if not matching and self.empty_flushes:
            row = self.empty_flushes.pop(0)
            row.finish(0, event)
            if self.last_flush_ns is not None and self.last_flush_ns >= row.event.time_ns:
                row.dispatch_ns = self.last_flush_ns
        elif matching or candidates:
            end = (matching or candidates)[-1]
            self.sequence_ends.remove(end)
            end.row.finish(0, event)
        else:
            self.unmatched["completions"] += 1

    def finish(self) -> None:
        for row in self.rows:
            if row.complete_ns is None:
                self.unmatched["undispatched" if row.dispatch_ns is None else "uncompleted"] += 1


def tiling(queue: list[Segment], begin: int, end: int, unmarked: int | None) -> list[Segment] | None:
    """Return the first exact tiling of [begin, end), depth first, with `unmarked` unmarked segments (None: any)."""
    hopeless: set[tuple[int, int]] = set()

    def rest(at: int, used: int) -> list[Segment] | None:
        if at == end:
            return [] if unmarked is None or used == unmarked else None
        if (at, used) in hopeless:
            return None
        for segment in queue:
            count = 0 if unmarked is None else used + (not segment.merged)
            if segment.begin == at and segment.end <= end and (unmarked is None or count <= unmarked):
                following = rest(segment.end, count)
                if following is not None:
                    return [segment, *following]
        hopeless.add((at, used))
        return None

    return rest(begin, 0)


def decode_slowly(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return rows with the columns of REQUESTS in queueing order, and the summary without zero counts.

    Without a queue event, requests begin with their dispatch.
    Raises ValueError if a file holds anything but records.
    """
    lost: Counter[str] = Counter()
    events: list[tuple[int, int, int, Event]] = []
    files = cpu_files(folder)
    for cpu, path in files.items():
        data, end, last = path.read_bytes(), 0, dict[tuple[int, int], int]()
        for at, sequence, event in raw_records(data):
            events.append((event.time_ns, cpu, at, event))
            end = at
            if "notify" not in event.is_:
                # The kernel numbers the events of each device on each CPU; a merged dump has several such series.
                series = (event.device, event.cpu)
                lost["sequence_gaps"] += max(0, sequence - last.get(series, sequence) - 1)
                last[series] = sequence
        lost["truncated_files"] += end < len(data)
        following = None
        for _, other, _, event in reversed(events):
            if other == cpu and "notify" not in event.is_:
                following = event.time_ns
            elif other == cpu and following is not None:
                event.time_ns = min(event.time_ns, following)
    lost["missing_cpu_files"] = max(files) + 1 - len(files)
    events.sort(key=lambda entry: (entry[3].time_ns, *entry[1:3]))
    first_ns = events[0][3].time_ns
    for *_, event in events:
        event.time_ns -= first_ns
    decoder = Decoder(from_dispatch=all(event.letter != "Q" for *_, event in events))
    for *_, event in events:
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
