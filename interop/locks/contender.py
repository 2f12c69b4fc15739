"""kazoo's Lock as one contender of many.

Run as `contender.py ADDRESS PARENT [PATTERN]`. Again and again it takes the lock,
prints @holds, makes the ephemeral PARENT-inside, which must not be there, and
removes it, prints @free and lets go, until it is killed. With a pattern its bids
are named by it, so that Curator, which puts kazoo's own names in no order, can
stand in the same line.
"""

import random
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.recipe.lock import Lock

WAIT = 60  # seconds that anything may take

address, parent = sys.argv[1:3]


class Named(Lock):
    if len(sys.argv) > 3:
        _NODE_NAME = sys.argv[3]
        _EXCLUDE_NAMES = [sys.argv[3]]


def say(line):
    print(line, flush=True)


client = KazooClient(hosts=address, timeout=3)
client.start(timeout=WAIT)
while True:
    lock = Named(client, parent)
    if not lock.acquire(timeout=WAIT):
        raise AssertionError("no lock within %d seconds" % WAIT)
    say("@holds")
    try:
        client.create(parent + "-inside", ephemeral=True)
    except NodeExistsError:
        say("@two")
    time.sleep(random.uniform(0.005, 0.03))
    client.delete(parent + "-inside")
    say("@free")
    lock.release()
