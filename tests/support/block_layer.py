"""Model the kernel's block layer: produce the events that blktrace would show, and the true requests.

Modelled after block/blk-core.c, blk-mq.c, blk-merge.c and blk-flush.c of Linux 6. Processes queue bios. These are split
at a largest size, merged in a process's plug or in the scheduler, dispatched in any order, refused, requeued, and
completed in parts and in any order. Flushes and FUA writes use the flush machinery.
"""

from __future__ import annotations

import random
from typing import Any

from block_layer_parts import SECTOR, SEQUENCED, WORDS, Bio, Part, Request, Setup, process_name, row_of_truth
from trace_files import Record

from drivelab.trace import records as bits


class BlockLayer:
    """Runs a setup with a seed; `records` and `rows` are its outcome."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup, self.dice = setup, random.Random(seed)
        self.records: list[Record] = []
        """In time order; all times differ."""
        self.rows: list[dict[str, Any]] = []
        self.device_flushes = 0
        self._ns = self.dice.randrange(1 << 50)
        self._start_ns = self._ns + 1
        self._named: set[int] = set()
        self._bios: list[Bio] = []
        self._plugs: dict[int, list[Request]] = {pid: [] for pid in range(100, 100 + setup.processes)}
        self._queue: list[Request] = []
        self._in_flight: list[Request] = []
        self._pending: list[Request] = []
        self._running: list[Request] = []
        self._flush: Request | None = None
        self._dispatches = 0
        while self._step():
            pass

    # Events

    def _event(self, letter: str, word: int, sector: int, sectors: int, pid: int, error: int = 0, to: int = -1) -> int:
        """Emit an event and return its time since the first event."""
        cpu = self.dice.randrange(self.setup.cpus)
        word = word & 0xFFFFFFFF if self.setup.version == 7 else word
        if pid not in self._named:
            self._named.add(pid)
            self._ns += 1
            name = process_name(pid).encode().ljust(16, b"\0")
            self.records.append(Record(self._ns, bits.NOTIFY, 0, 0, pid, cpu, payload=name))
        self._ns += self.dice.randint(1, 1000)
        payload = to.to_bytes(8, "big") if to >= 0 else b""
        if self.setup.cgroups and self.dice.random() < 0.1:
            word, payload = word | 1 << 8, b"\7cgroup\0" + payload
        number = bits.ACTIONS.index(letter) | word
        self.records.append(Record(self._ns, number, sector, SECTOR * sectors, pid, cpu, error, payload))
        return self._ns - self._start_ns

    def _request_event(self, letter: str, request: Request) -> int:
        return self._event(letter, request.word, request.sector, request.sectors, self._any_pid())

    def _any_pid(self) -> int:
        """Return any PID: in interrupts and kernel threads, any process may be the current one."""
        return self.dice.choice([0, *self._plugs])

    # What happens next

    def _step(self) -> bool:
        actions = []
        if len(self.rows) < self.setup.bios:
            actions += [self._submit] * 6
        actions += [self._unplug] * any(self._plugs.values())
        if self._queue and len(self._in_flight) < self.setup.depth:
            actions += [self._dispatch] * 4
        if self._in_flight:
            actions += [self._complete] * 3 + [self._requeue] * (self.setup.requeues and not self.setup.repeats)
        if actions:
            self.dice.choice(actions)()
        return bool(actions)

    def _is_free(self, sector: int, sectors: int) -> bool:
        return all(
            bio.truth["complete_ns"] is not None or bio.sector + bio.sectors <= sector or sector + sectors <= bio.sector
            for bio in self._bios
        )

    def _submit(self) -> None:
        dice, pid = self.dice, self.dice.choice(list(self._plugs))
        operation = dice.choice(["read", "read", "write", "write", "write", "discard", "write-zeroes"])
        word = WORDS[operation]
        for flag in (bits.SYNC, bits.META, bits.READAHEAD if operation == "read" else 0):
            word |= flag if dice.random() < 0.3 else 0
        if self.setup.flushes and operation == "write" and dice.random() < 0.4:
            word |= dice.choice([bits.FLUSH, bits.FUA, SEQUENCED])
            if word & bits.FLUSH and not word & bits.FUA and dice.random() < 0.5:
                self._submit_empty_flush(word & ~bits.META, pid)
                return
        if self.setup.repeats:
            sector, sectors = 8 * dice.randint(1, 3), 8
        else:
            # After or before the last bio, or anywhere.
            sectors, last = dice.randint(1, 48), self._bios[-1] if self._bios else None
            near = [last.sector + last.sectors, last.sector - sectors] if last else []
            sector = dice.choice([*near, *near, dice.randint(8, 2000)])
            if sector < 8 or not self._is_free(sector, sectors):
                return
        bio = self._queue_bio(word, sector, sectors, pid)
        part = Part(bio, sector, sectors)
        while not self.setup.repeats and part.sectors > self.setup.split_sectors:
            front, rest = dice.randint(self.setup.split_sectors // 2, self.setup.split_sectors), part
            at = part.sector + front
            self._event("X", word, part.sector, front, pid, to=at)
            rest, part = Part(bio, at, part.sectors - front), Part(bio, part.sector, front)
            self._insert(part, pid, mergeable=False)
            part = rest
        self._insert(part, pid, mergeable=True)

    def _queue_bio(self, word: int, sector: int, sectors: int, pid: int) -> Bio:
        queue_ns = self._event("Q", word, sector, sectors, pid)
        seen = word & 0xFFFFFFFF if self.setup.version == 7 else word
        truth = row_of_truth(seen, sector, sectors, queue_ns, pid, self.records[-1].cpu)
        self.rows.append(truth)
        bio = Bio(truth, word, sector, sectors, sectors)
        if sectors:
            self._bios.append(bio)
        return bio

    def _submit_empty_flush(self, word: int, pid: int) -> None:
        if self.setup.has_queue:
            bio = self._queue_bio(word, 0, 0, pid)
            request = Request(word & ~bits.FLUSH | bits.SYNC, [Part(bio, 0, 0)], False, ["flush"], True)
            self._advance(request, 0)

    def _insert(self, part: Part, pid: int, mergeable: bool) -> None:
        """Merge a bio into a request, or make it a new request (blk_mq_submit_bio)."""
        word = part.bio.word
        if not self.setup.has_queue:
            self._in_flight.append(Request(word, [part]))
            return
        mergeable = mergeable and self.setup.merges and not self.setup.repeats and not word & SEQUENCED
        collects = self.setup.discard_ranges and not self.setup.repeats and bool(word & bits.DISCARD)
        plug = self._plugs[pid]
        if collects and mergeable and plug and plug[-1].mergeable and plug[-1].word & bits.DISCARD:
            plug[-1].parts.append(part)
            return
        if mergeable and not collects and (self._merge(part, plug, pid) or self._merge(part, self._queue, pid)):
            return
        self._event("G", word, part.sector, part.sectors, pid)
        request = Request(word, [part], mergeable)
        if word & SEQUENCED:
            self._begin_sequence(request)
        elif collects or (self.dice.random() < 0.5 and not self.setup.repeats):
            plug.append(request)
        else:
            self._queue.append(request)

    def _merge(self, part: Part, requests: list[Request], pid: int) -> bool:
        kind = WORDS["write-zeroes"] | bits.DISCARD
        for request in requests:
            if not request.mergeable or (request.word ^ part.bio.word) & kind or request.sectors > 200:
                continue
            if request.end == part.sector:
                self._event("M", part.bio.word, part.sector, part.sectors, pid)
                request.parts.append(part)
            elif part.sector + part.sectors == request.sector:
                self._event("F", part.bio.word, part.sector, part.sectors, pid)
                request.parts.insert(0, part)
            else:
                continue
            self._merge_requests(request, requests, pid)
            return True
        return False

    def _merge_requests(self, grown: Request, requests: list[Request], pid: int) -> None:
        """Merge the later of two neighbouring requests into the earlier (attempt_merge)."""
        kind = WORDS["write-zeroes"] | bits.DISCARD
        for other in requests:
            if other is grown or not other.mergeable or (grown.word ^ other.word) & kind:
                continue
            for front, back in ((grown, other), (other, grown)):
                if front.end == back.sector:
                    self._event("M", back.word, back.sector, back.sectors, pid)
                    front.parts += back.parts
                    requests.remove(back)
                    return

    def _unplug(self) -> None:
        pid = self.dice.choice([pid for pid, plug in self._plugs.items() if plug])
        self._event("U", 0, 0, 0, pid)
        for request in self._plugs[pid]:
            self._event("I", request.word, request.sector, request.sectors, pid)
        self._queue += self._plugs[pid]
        self._plugs[pid] = []

    # The device

    def _dispatch(self) -> None:
        request = self._queue[0] if self.setup.repeats else self.dice.choice(self._queue)
        if self.setup.refusals and self.dice.random() < 0.2:
            self._request_event("R", request)
            return
        self._queue.remove(request)
        self._in_flight.append(request)
        dispatch_ns = self._request_event("D", request)
        if request is self._flush:
            self.device_flushes += 1
            for waiting in self._running:
                for part in waiting.parts:
                    if part.bio.sectors == 0:
                        part.bio.truth["dispatch_ns"] = dispatch_ns
            return
        for part in request.parts:
            part.begun = False
            truth = part.bio.truth
            truth["pieces"] += 1
            if truth["dispatch_ns"] is None:
                truth["dispatch_ns"], truth["dispatch_id"] = dispatch_ns, self._dispatches
        self._dispatches += 1

    def _requeue(self) -> None:
        request = self.dice.choice(self._in_flight)
        if not self.setup.has_queue:
            return
        self._request_event("R", request)
        self._in_flight.remove(request)
        self._queue.insert(0, request)
        request.mergeable = False
        for part in request.parts if request is not self._flush else ():
            truth = part.bio.truth
            truth["requeues"] += 1
            # Only the incomplete rest of a piece is undone.
            truth["pieces"] -= not part.begun
            if truth["pieces"] == 0:
                truth["dispatch_ns"] = truth["dispatch_id"] = None

    def _complete(self) -> None:
        request = self._in_flight[0] if self.setup.repeats else self.dice.choice(self._in_flight)
        error = self.dice.choice([5, 121]) if self.setup.errors and self.dice.random() < 0.1 else 0
        if request is self._flush:
            self._complete_flush(request)
            return
        sectors = request.sectors
        is_whole = request.sequenced or (self.setup.discard_ranges and bool(request.word & bits.DISCARD))
        is_partial = self.setup.partial and self.setup.has_queue and not is_whole and sectors > 1
        done = self.dice.randint(1, sectors) if is_partial and self.dice.random() < 0.3 else sectors
        time_ns = self._event("C", request.word, request.sector, done, self._any_pid(), error)
        while done:
            part = request.parts[0]
            part.begun = True
            step = min(done, part.sectors)
            done -= step
            if step == part.sectors and not (request.sequenced and len(request.parts) == 1):
                request.parts.pop(0)
            elif not request.sequenced:
                part.sector, part.sectors = part.sector + step, part.sectors - step
            self._finish(part.bio, step, time_ns, error)
        if request.sequenced:
            self._in_flight.remove(request)
            request.steps.remove("data")
            self._advance(request, error)
        elif not request.parts:
            self._in_flight.remove(request)

    def _finish(self, bio: Bio, sectors: int, time_ns: int, error: int) -> None:
        bio.left -= sectors
        bio.truth["error"] = bio.truth["error"] or error
        if bio.left == 0 and bio.sequences == 0:
            bio.truth["complete_ns"] = time_ns

    # The flush machinery (blk-flush.c)

    def _begin_sequence(self, request: Request) -> None:
        word = request.word
        steps = ["flush"] * bool(word & bits.FLUSH) + ["data"]
        steps += ["flush"] * (bool(word & bits.FUA) and not self.setup.device_fua)
        request.word = word & ~(bits.FLUSH | (0 if self.setup.device_fua else bits.FUA)) | bits.SYNC
        if steps == ["data"]:
            self._queue.append(request)
            return
        request.steps, request.sequenced = steps, True
        request.parts[0].bio.sequences += 1
        self._advance(request, 0)

    def _advance(self, request: Request, error: int) -> None:
        if not request.steps or error:
            part = request.parts[0]
            time_ns = self._event("C", request.word, part.sector, 0, self._any_pid(), error)
            part.bio.sequences -= bool(part.sectors)
            self._finish(part.bio, 0, time_ns, error)
        elif request.steps[0] == "data":
            self._queue.insert(0, request)
        else:
            self._pending.append(request)
        self._kick_flush()

    def _kick_flush(self) -> None:
        """Start a flush unless one is running; requests that arrive meanwhile share the next flush."""
        if self._flush is None and self._pending:
            self._running, self._pending = self._pending, []
            self._flush = Request(bits.READ | bits.FLUSH, [], mergeable=False)
            self._queue.append(self._flush)

    def _complete_flush(self, request: Request) -> None:
        self._request_event("C", request)
        self._in_flight.remove(request)
        done, self._running, self._flush = self._running, [], None
        for waiting in done:
            waiting.steps.pop(0)
            self._advance(waiting, 0)
        self._kick_flush()
