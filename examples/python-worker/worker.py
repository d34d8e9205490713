#!/usr/bin/env python3
"""A Millrace worker in Python: takes tasks from a node under claims, keeps the claims alive, runs the tasks, and says
how they ended. See README.md.

    python3 worker.py 127.0.0.1:7434
"""

import argparse
import asyncio
import itertools
import json
import logging
import math
import os
import pathlib
import random
import signal
import socket
import sys
import time
import uuid

from millrace import CallError, Node, task_name
from registration import PREFIX, Refused, Registration

HERE = pathlib.Path(__file__).resolve().parent
KIND = "python.call"  # the tasks that this worker knows how to run
LABEL = "lang=python"  # what such a task requires of its worker

POLLERS_MAX = 16  # shards that are asked for work at once
POLL_MS = 10_000  # how long a shard may hold a request when it has nothing to do
POLL_MS_MANY = 500  # the same when there are more shards than pollers, which take turns then
LOOK_S = 0.1  # how late a claim's end may be noticed after the machine slept
STOP_S = 2  # from the polite signal to the other one
RESULT_BYTES_MAX = 64 * 1024  # what a node accepts
MESSAGE_LENGTH_MAX = 2_000

log = logging.getLogger("worker")


# Leases have nothing to do with the time of day, and run out while this machine sleeps: Linux counts that here only.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now():
    return time.clock_gettime(CLOCK)


class Backoff:
    """Waits that grow and differ, so that workers do not all come back at once."""

    def __init__(self):
        self.reset()

    def reset(self):
        self._next_s = 0.1

    async def pause(self):
        await asyncio.sleep(self._next_s * random.uniform(0.5, 1))
        self._next_s = min(self._next_s * 2, 5)


class Holding:
    """A claim as the worker holds it.

    Its time is counted from before the message was sent that granted or renewed it, so it ends here no later than at
    the node. When nothing is heard for the lease and the task's grace, somebody else may have the task: it is stopped.
    Where there is no grace, because it may change the world, it is stopped a seventh of the lease sooner: the node's
    time may run a tenth faster than ours, and to stop takes time.
    """

    def __init__(self, shard, grant, sent_at):
        self.shard, self.grant = shard, grant
        self.name = task_name(shard, grant.task)
        self.why = None  # why it was stopped, if it was
        self.stopped = asyncio.Event()
        self._end_timer = None
        self.renewed(sent_at, grant.lease_ms)

    def renewed(self, sent_at, lease_ms):
        self.renew_at = sent_at + lease_ms / 3_000
        self.close()
        grace_ms = self.grant.grace_ms or -lease_ms / 7
        self._ends_at = sent_at + (lease_ms + grace_ms) / 1_000
        self._look()

    def _look(self):
        left_s = self._ends_at - now()
        if left_s <= 0:
            return self.stop("lease-ran-out")
        # Timers stand still while the machine sleeps, so none is set for long.
        self._end_timer = asyncio.get_running_loop().call_later(min(left_s, LOOK_S), self._look)

    def stop(self, why):
        if self.why is None:
            self.why = why
            self.stopped.set()

    def close(self):
        if self._end_timer:
            self._end_timer.cancel()


# How an attempt ends: a method and what it says, or None when there is nobody to tell.
def failed(reason, message):
    return "Fail", {"reason": f"FAIL_REASON_{reason}", "message": message[:MESSAGE_LENGTH_MAX]}


def committed(payload):
    if len(payload.encode()) > RESULT_BYTES_MAX:
        return failed("USER_FAILURE", f"the result has more than {RESULT_BYTES_MAX} bytes")
    return "Commit", {"result": {"payload": payload}}


STOPPED = {
    "cancelled": failed("CANCELLED", "cancelled"),
    "timed-out": failed("TIMED_OUT", "the attempt exceeded its time limit"),
    "drained": failed("PREEMPTED", "the worker left"),
    "lease-ran-out": failed("EXECUTOR_LOST", "the lease could not be renewed in time"),
    "lost": None,  # it is somebody else's now, or over
}


class Worker:
    def __init__(self, node, name, offers, slots, tasks_file):
        self.node, self.name, self.slots, self.tasks_file = node, name, slots, tasks_file
        self.offers = sorted({LABEL, *offers})
        self.holdings = {}  # by shard and token
        self.running = set()  # those that have a slot
        self.asking = set()  # shards whose answer to a Reserve is not known
        self.work = set()  # asyncio tasks: attempts, endings, renewals
        self.renewing = {}  # shard -> an event that says: there is a new claim
        self.room = asyncio.Event()
        self.room.set()
        self.away = False  # the node did not answer when it was last asked

    async def run(self):
        """Asks for work until it is cancelled. What was begun goes on: see leave."""
        await self.persist(self.ask, self.node.learn)
        found = await self.persist(self.ask, self.node.call, "GetPartitionMap")
        log.info("%s offers %s to %d shards of %s", self.name, ",".join(self.offers), found.shards, found.cluster_id)
        pollers = min(found.shards, POLLERS_MAX)
        await asyncio.gather(*(self.poll(range(i, found.shards, pollers)) for i in range(pollers)))

    async def leave(self, within_s):
        """Gives back what was not begun; lets what runs go on for the time, then gives that back, too."""
        # A request that was cut off may have been granted all the same.
        await asyncio.gather(*map(self.give_back_unknown, self.asking), return_exceptions=True)
        loop = asyncio.get_running_loop()
        loop.call_later(within_s, lambda: [holding.stop("drained") for holding in self.holdings.values()])
        if self.work:
            await asyncio.wait(self.work, timeout=within_s + STOP_S + 10)

    async def ask(self, ask, *args, **fields):
        """One call. That the node is away is said once, and that it is back."""
        try:
            answer = await ask(*args, **fields)
        except CallError as error:
            if not error.transient:
                log.warning("%s", error)
            elif not self.away:
                log.warning("the node is away: %s", error)
                self.away = True
            raise
        if self.away:
            log.info("the node is back")
        self.away = False
        return answer

    def call(self, method, **fields):
        return self.ask(self.node.call, method, executor=self.name, **fields)

    async def persist(self, ask, *args, **fields):
        """Asks until there is an answer; gives up only where that is no use."""
        backoff = Backoff()
        while True:
            try:
                return await ask(*args, **fields)
            except CallError as error:
                if error.hopeless:
                    raise
            await backoff.pause()

    # -- taking work

    async def poll(self, shards):
        wait_ms = POLL_MS if len(shards) == 1 else POLL_MS_MANY
        synced = set()
        for shard in itertools.cycle(shards):
            if shard not in synced:
                await self.persist(self.give_back_unknown, shard)
                synced.add(shard)
            await self.reserve(shard, wait_ms)

    async def reserve(self, shard, wait_ms):
        """One question, asked until there is an answer: in the same words, for it may have been granted already."""
        nonce = uuid.uuid4().hex
        backoff = Backoff()
        while True:
            await self.room.wait()
            self.asking.add(shard)
            try:
                answer = await self.call(
                    "Reserve",
                    timeout=wait_ms / 1_000 + 10,
                    shard=shard,
                    offers=self.offers,
                    count=max(1, self.slots - len(self.running)),
                    nonce=nonce,
                    wait_ms=wait_ms,
                )
                break
            except CallError as error:
                if error.hopeless:
                    raise
            await backoff.pause()
        self.asking.discard(shard)
        for grant in answer.grants:
            # The question may have been held for longer than the lease is. Nothing runs before Start is answered, and
            # from then on the lease counts from that question.
            self.take(Holding(shard, grant, now()))

    def take(self, holding):
        self.holdings[holding.shard, holding.grant.token] = holding
        if len(self.running) < self.slots:
            self.running.add(holding)
            self.room_changed()
            self.follow(self.attempt(holding))
        else:  # several shards gave at once what only one of them should have
            self.follow(self.tell(holding, ("Release", {})))
        if holding.shard in self.renewing:
            self.renewing[holding.shard].set()
        else:
            self.renewing[holding.shard] = asyncio.Event()
            self.follow(self.keep(holding.shard))

    def follow(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.work.add(task)
        task.add_done_callback(self.work.discard)

    def room_changed(self):
        if len(self.running) < self.slots:
            self.room.set()
        else:
            self.room.clear()

    async def give_back_unknown(self, shard):
        """What the node believes to be held by this name, and is not: from an earlier life, or a lost answer."""
        answer = await self.call("Renew", shard=shard, claims=self.claims_in(shard))
        for claim in answer.held:
            if (shard, claim.token) in self.holdings:
                continue
            log.info("giving back %s", task_name(shard, claim.task))
            ending = failed("EXECUTOR_LOST", "the worker no longer knows of it") if claim.started else ("Release", {})
            method, fields = STOPPED["cancelled"] if claim.cancelling else ending
            await self.call(method, shard=shard, task=claim.task, token=claim.token, **fields)

    # -- keeping it

    def claims_in(self, shard):
        return [
            {"task": holding.grant.task, "token": token}
            for (where, token), holding in self.holdings.items()
            if where == shard
        ]

    async def keep(self, shard):
        """One Renew for all claims of a shard, whenever a third of one of their leases has passed."""
        news = self.renewing[shard]
        while claims := self.claims_in(shard):
            held = [self.holdings[shard, claim["token"]] for claim in claims]
            left_s = min(holding.renew_at for holding in held) - now()
            if left_s > 0:
                news.clear()
                try:
                    await asyncio.wait_for(news.wait(), left_s)  # a newcomer may be due sooner
                except asyncio.TimeoutError:
                    pass
                continue
            await self.renew(shard, claims, every_s=min(holding.grant.lease_ms for holding in held) / 3_000)
        del self.renewing[shard]

    async def renew(self, shard, claims, every_s):
        sent_at = now()
        try:
            answer = await self.call("Renew", timeout=max(every_s, 0.2), shard=shard, claims=claims)
        except CallError:
            await asyncio.sleep(min(every_s, 0.5))  # soon again; when it is too late, the holdings stop by themselves
            return
        for claim in answer.held:
            holding = self.holdings.get((shard, claim.token))
            if holding:
                holding.renewed(sent_at, claim.lease_ms)
                if claim.cancelling:
                    holding.stop("cancelled")
        for claim in answer.lost:
            holding = self.holdings.get((shard, claim.token))
            if holding:
                holding.stop("lost")

    # -- doing it

    async def attempt(self, holding):
        try:
            ending = await self.ending_of(holding)
        except Exception as error:  # a bug here must not look like one of the task's
            log.exception("%s", holding.name)
            ending = failed("EXECUTOR_LOST", f"{type(error).__name__}: {error}")
        finally:
            self.running.discard(holding)  # from here on only words are exchanged
            self.room_changed()
        await self.tell(holding, ending)

    async def ending_of(self, holding):
        """Runs the attempt to its end, whatever that is."""
        grant = holding.grant
        try:
            sent_at = now()
            started = await self.say("Start", holding, patience_s=grant.lease_ms / 1_000)
            holding.renewed(sent_at, started.lease_ms)
        except CallError as error:
            return STOPPED["cancelled"] if error.reason == "task-phase" else None
        if grant.kind != KIND or grant.planning:
            return failed("EXECUTOR_LOST", f"this worker does not know how to do {grant.kind}")
        too_long = asyncio.get_running_loop().call_later(grant.attempt_ms / 1_000, holding.stop, "timed-out")
        try:
            ending = await self.run_task(holding)
        finally:
            too_long.cancel()
        return STOPPED[holding.why] if holding.why else ending

    async def run_task(self, holding):
        """In a process of its own (call.py), which can be stopped at any time."""
        try:
            spec = json.loads(holding.grant.spec)
            steps = Steps(str(spec["call"]))
        except (ValueError, KeyError, TypeError):
            return failed("USER_FAILURE", 'the spec must be JSON such as {"call": "primes", "args": [100]}')
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(HERE / "call.py"),
            self.tasks_file,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # so that whatever it starts is stopped with it
            limit=2 * RESULT_BYTES_MAX,
        )
        process.stdin.write(json.dumps(spec).encode() + b"\n")
        answer = asyncio.ensure_future(self.answer_of(process, holding, steps))
        stopped = asyncio.ensure_future(holding.stopped.wait())
        try:
            await asyncio.wait({answer, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            await end(process)
        return await answer

    async def answer_of(self, process, holding, steps):
        await self.report(holding, steps.begun())
        said = {}
        try:
            while line := await process.stdout.readline():
                said = json.loads(line)
                if "step" in said:
                    await self.report(holding, steps.next(said["step"]))
        except ValueError:
            said = {"error": f"the result has more than {RESULT_BYTES_MAX} bytes"}
        if holding.why:
            return None  # stopped, and told as that
        await self.report(holding, steps.ended(well="result" in said))
        if "result" in said:
            return committed(json.dumps(said["result"]))
        if "error" in said:
            return failed(said.get("reason", "FAIL_REASON_USER_FAILURE").replace("FAIL_REASON_", ""), said["error"])
        code = await process.wait()
        if code == -signal.SIGKILL:
            return failed("OUT_OF_MEMORY", "killed from outside, most likely for want of memory")
        return failed("USER_FAILURE", f"ended without an answer, with exit code {code}")

    # -- telling of it

    async def report(self, holding, steps):
        """Progress is a courtesy: what cannot be said is not said again."""
        try:
            await self.say("Report", holding, patience_s=0, steps=steps)
        except CallError as error:
            if error.reason == "token-stale":
                holding.stop("lost")

    async def tell(self, holding, ending):
        """The claim is renewed meanwhile, so that the ending still counts when it gets through."""
        try:
            while ending:
                method, fields = ending
                ending = None
                try:
                    await self.say(method, holding, patience_s=math.inf, **fields)
                    log.info("%s: %s %s", holding.name, method, fields.get("reason", ""))
                except CallError as error:
                    if method == "Commit" and error.hopeless:  # such a result would be refused for ever
                        ending = failed("USER_FAILURE", str(error))
        finally:
            del self.holdings[holding.shard, holding.grant.token]
            holding.close()
            if holding.shard in self.renewing:
                self.renewing[holding.shard].set()  # there may be nothing left to renew

    async def say(self, method, holding, patience_s, **fields):
        """Every command may be repeated: with the same token and content it gets its first answer again."""
        give_up_at = now() + patience_s
        backoff = Backoff()
        grant = holding.grant
        about = {"shard": holding.shard, "task": grant.task, "token": grant.token}
        while True:
            try:
                return await self.call(method, **about, **fields)
            except CallError as error:
                if not error.transient or holding.why == "lost" or now() > give_up_at:
                    raise
            await backoff.pause()


class Steps:
    """What a task is at, numbered: each step ends where the next begins."""

    def __init__(self, first):
        self._number, self._name = 1, first[:100]

    def _now(self, status):
        return {"step": self._number, "name": self._name, "status": f"STEP_STATUS_{status}"}

    def begun(self):
        return [self._now("STARTED")]

    def next(self, name):
        before = self._now("SUCCEEDED")
        self._number, self._name = self._number + 1, name[:100]
        return [before, *self.begun()]

    def ended(self, well):
        return [self._now("SUCCEEDED" if well else "FAILED")]


async def end(process):
    """Politely, then not; with everything that it started."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            break
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:
            pass
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except asyncio.TimeoutError:
            pass
    process.stdin.close()


async def main(options):
    ca = pathlib.Path(options.ca).read_bytes() if options.ca else None
    token = os.environ.get("MILLRACE_WORKER_TOKEN") or os.environ.get("MILLRACE_TOKEN")
    name, registration = options.name, None
    if token and token.startswith(PREFIX):
        registration = Registration(options.address, token, options.data, options.slots, options.ca)
        credential = await registration.begin()
        name, token = credential["name"], credential["token"]
    node = Node(options.address, token, ca)
    worker = Worker(node, name, options.label, options.slots, options.tasks)
    asked_to_leave = asyncio.Event()
    loop = asyncio.get_running_loop()

    def leave(number):
        asked_to_leave.set()
        loop.remove_signal_handler(number)  # the second one ends it at once

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
    running = asyncio.ensure_future(worker.run())
    ends = {running, asyncio.ensure_future(asked_to_leave.wait())}
    if registration:
        ends.add(asyncio.ensure_future(dismissed(registration, node)))
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for one in ends:
        one.cancel()
    problem = (await asyncio.gather(running, return_exceptions=True))[0]
    log.info("leaving; %d running", len(worker.running))
    await worker.leave(options.stop_within)
    await node.close()
    if isinstance(problem, CallError):
        sys.exit(f"worker: {problem}")
    if not isinstance(problem, asyncio.CancelledError):
        raise problem


async def dismissed(registration, node):
    log.info("asked to leave: %s", await registration.renew_until_dismissed(node.use_token))


def options_of(arguments):
    parser = argparse.ArgumentParser(description="Runs the tasks of a Millrace node that require lang=python.")
    parser.add_argument("address", help="a node's port (edge.listen), such as 127.0.0.1:7434")
    parser.add_argument("--tasks", default=str(HERE / "tasks.py"), help="the file with the functions (tasks.py)")
    parser.add_argument("--name", default=f"python/{socket.gethostname()}/{os.getpid()}", help="names this worker")
    parser.add_argument("--slots", type=int, default=os.cpu_count(), help="how many tasks run at once")
    parser.add_argument("--label", action="append", default=[], help="name=value: what else this worker offers")
    parser.add_argument("--stop-within", type=float, default=20, help="seconds for what runs at SIGTERM (20)")
    parser.add_argument("--data", default="millrace-python-worker", help="the folder of a worker that registers")
    parser.add_argument("--ca", help="TLS, with a node that this certificate authority vouches for")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        asyncio.run(main(options_of(sys.argv[1:])))
    except Refused as error:
        sys.exit(f"worker: {error}")
