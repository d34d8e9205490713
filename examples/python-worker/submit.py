#!/usr/bin/env python3
"""Submits one call of a Python function as a job, waits for its end and prints the result.

    python3 submit.py 127.0.0.1:7434 primes 30
"""

import asyncio
import json
import os
import random
import sys
import uuid

from millrace import CallError, Node, job_name

HOUR_MS = 3_600_000


def stage(call, args):
    """One stage of one task. Everything that may go wrong has a limit here, and none is left to chance."""
    template = {
        "kind": "python.call",
        "requires": ["lang=python"],
        "lease_ms": 10_000,
        "attempts_max": 3,
        "retry_on": "RETRY_ON_INFRASTRUCTURE",
        "backoff_ms": 1_000,
        "backoff_ms_max": 60_000,
        "queue_ms": HOUR_MS,
        "attempt_ms": HOUR_MS,
        "effects": "EFFECTS_PURE",
        "grace_ms": 60_000,
    }
    task = {"key": "1", "spec": json.dumps({"call": call, "args": args})}
    return {"name": call, "after": "AFTER_SUCCESS", "tasks": {"template": template, "tasks": [task]}}


async def main(address, call, *args):
    node = Node(address, os.environ.get("MILLRACE_TOKEN"))
    await node.learn()
    shards = (await node.call("GetPartitionMap")).shards
    shard = random.randrange(shards)  # any will do; jobs that share a key, a lock or a merge key must share a shard
    submitted = await node.call(
        "Submit",
        shard=shard,
        tenant=os.environ.get("MILLRACE_TENANT", "default"),
        door="python",
        name=f"{call} from Python",
        request_key=uuid.uuid4().hex,  # said twice, it is still one job
        stages=[stage(call, [json.loads(arg) for arg in args])],
        deadline_ms=2 * HOUR_MS,
    )
    print(job_name(shard, submitted.job), "submitted", flush=True)
    await ended(node, shard, submitted.job)
    job = (await node.call("GetJob", shard=shard, job=submitted.job)).job
    phase = node.enum_name("JobPhase", job.phase).replace("JOB_PHASE_", "")
    task = job.tasks[0]
    print(phase, task.result.payload if task.HasField("result") else task.last_failure.message)
    await node.close()
    return 0 if phase == "SUCCEEDED" else 1


async def ended(node, shard, job):
    """Watches until the job has ended; a node that goes away is asked again when it is back."""
    after = None
    while True:
        try:
            async for message in node.stream("Watch", shard=shard, job=job, after=after):
                kind = message.WhichOneof("message")
                if kind == "end":
                    return
                if kind in ("snapshot", "events"):
                    after = getattr(message, kind).stamp  # go on from here
        except CallError as error:
            if not error.transient:
                raise
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
