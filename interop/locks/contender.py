"""A contender that uses kazoo, one of many.

Run as `contender.py MODE ADDRESS PARENT [PATTERN]`. Until it is killed, it
repeatedly obtains the claim of MODE, prints @holds, creates an ephemeral child
of PARENT-inside, checks for other holders there, deletes it, prints @free and
gives the claim up. A semaphore has two leases. PATTERN is the name for the bids
of a lock. With it, Curator, which cannot sort kazoo's own names, can wait in
the same line.
"""

import random
import sys
import time
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import Lock

WAIT = 60  # timeout of every wait, in seconds
# kazoo's ReadLock also waits for the writers behind it in the line, which wait for
# the reader. So a reader gives up after a while and tries again.
READ_WAIT = 0.5
LEASES = 2

mode, address, parent = sys.argv[1:4]
letter = {"read": "r", "semaphore": "l"}.get(mode, "x")


class Named(Lock):
    if len(sys.argv) > 4:
        _NODE_NAME = sys.argv[4]
        _EXCLUDE_NAMES = [sys.argv[4]]


def say(line):
    print(line, flush=True)


def inside():
    """Shows that it holds, and checks that no other client does."""
    say("@holds")
    me = letter + "-" + uuid.uuid4().hex
    client.create(parent + "-inside/" + me, ephemeral=True)
    names = client.get_children(parent + "-inside")
    others = [n for n in names if n != me and not (letter == "r" and n.startswith("r"))]
    if len(others) > (LEASES - 1 if letter == "l" else 0):
        say("@two %s" % names)
    time.sleep(random.uniform(0.005, 0.03))
    client.delete(parent + "-inside/" + me)
    say("@free")


client = KazooClient(hosts=address, timeout=3)
client.start(timeout=WAIT)
kinds = {
    "lock": lambda: Named(client, parent),
    "write": lambda: client.WriteLock(parent),
    "read": lambda: client.ReadLock(parent),
    "semaphore": lambda: client.Semaphore(parent, max_leases=LEASES),
}
while True:
    if mode == "election":
        client.Election(parent, "kazoo").run(inside)
        continue
    one = kinds[mode]()
    try:
        if not one.acquire(timeout=READ_WAIT if mode == "read" else WAIT):
            raise AssertionError("nothing within %d seconds" % WAIT)
    except LockTimeout:
        if mode == "read":
            continue
        raise
    inside()
    one.release()
