"""Uses each of kazoo's recipes, so that the command recipes can recognise it.

Run as `shapes.py SERVER PREFIX`; it says @look when all stand, and ends once
PREFIX/release exists.
"""

import os
import sys
import threading
import time
from datetime import timedelta

from kazoo.client import KazooClient
from kazoo.recipe.lease import NonBlockingLease

server, prefix = sys.argv[1:3]


def connect():
    client = KazooClient(hosts=server, timeout=10.0)
    client.start(timeout=180)
    return client


ann, bob, cat = connect(), connect(), connect()


def path(name):
    return prefix + "/" + name


def start(work, *args):
    """Starts a call that waits and never succeeds."""

    def run():
        try:
            work(*args)
        except Exception:  # the session is closed at the end
            pass

    threading.Thread(target=run, daemon=True).start()


def until(condition, what):
    end = time.monotonic() + 180
    while not condition():
        if time.monotonic() > end:
            print("not in time:", what, file=sys.stderr, flush=True)
            os._exit(1)
        time.sleep(0.01)


def children(name, count):
    """Waits until there are this many children."""
    until(lambda: ann.exists(path(name)) and len(ann.get_children(path(name))) == count, "%d in %s" % (count, name))


def locks():
    assert ann.Lock(path("lock"), "ann").acquire()
    start(bob.Lock(path("lock"), "bob").acquire)
    children("lock", 2)
    # Two threads of one client, without names.
    assert ann.Lock(path("threads")).acquire()
    start(ann.Lock(path("threads")).acquire)
    children("threads", 2)
    assert ann.ReadLock(path("rw"), "ann").acquire()
    assert bob.ReadLock(path("rw"), "bob").acquire()
    start(cat.WriteLock(path("rw"), "cat").acquire)
    children("rw", 3)


def semaphore():
    assert ann.Semaphore(path("semaphore"), "ann", max_leases=2).acquire()
    assert bob.Semaphore(path("semaphore"), "bob", max_leases=2).acquire()
    start(cat.Semaphore(path("semaphore"), "cat", max_leases=2).acquire)
    children("semaphore-__lock__", 1)


def election():
    leads = threading.Event()

    def lead():
        leads.set()
        threading.Event().wait()

    start(ann.Election(path("election"), "ann").run, lead)
    assert leads.wait(180)
    start(bob.Election(path("election"), "bob").run, lead)
    children("election", 2)


def groups():
    ann.Party(path("party"), "ann").join()
    bob.Party(path("party"), "bob").join()
    ann.ShallowParty(path("shallow"), "ann").join()
    bob.ShallowParty(path("shallow"), "bob").join()


def queues():
    for item in b"one", b"two":
        ann.Queue(path("queue")).put(item)
        ann.LockingQueue(path("locking")).put(item)
    assert bob.LockingQueue(path("locking")).get(180) == b"one"


def barriers():
    ann.Barrier(path("barrier")).create()
    start(ann.DoubleBarrier(path("waiting"), 3, "ann").enter)
    start(bob.DoubleBarrier(path("waiting"), 3, "bob").enter)
    children("waiting", 2)
    start(ann.DoubleBarrier(path("begun"), 2, "ann").enter)
    bob.DoubleBarrier(path("begun"), 2, "bob").enter()
    children("begun", 3)


def rest():
    """Recipes whose znodes look like any other."""
    counter = ann.Counter(path("counter"))
    counter += 3
    assert NonBlockingLease(ann, path("lease"), timedelta(hours=1), "ann")


def left_behind():
    """A lock that outlives its session, and two clients that wait for each other."""
    gone = connect()
    assert gone.Lock(path("left behind/lock"), "gone").acquire(ephemeral=False)
    gone.stop()
    gone.close()
    assert ann.Lock(path("left behind/1"), "ann").acquire()
    assert bob.Lock(path("left behind/2"), "bob").acquire()
    start(ann.Lock(path("left behind/2"), "ann").acquire)
    start(bob.Lock(path("left behind/1"), "bob").acquire)
    children("left behind/1", 2)
    children("left behind/2", 2)


for scene in (locks, semaphore, election, groups, queues, barriers, rest, left_behind):
    scene()
print("@look", flush=True)
until(lambda: ann.exists(prefix + "/release"), "release")
os._exit(0)
