"""kazoo's Queue, LockingQueue, Counter and leases."""

import datetime

from common import equal, finish, sessions, start


def plain(clients):
    queue = clients[0].Queue("/queue")
    equal(queue.get(), None, "get of an empty queue")
    queue.put(b"low", priority=200)
    queue.put(b"first")
    queue.put(b"second")
    queue.put(b"urgent", priority=1)
    other = clients[1].Queue("/queue")
    equal(len(other), 4, "length")
    got = [other.get() for _ in range(4)]
    equal(got, [b"urgent", b"first", b"second", b"low"], "order by priority, then age")


def locking(clients):
    """An entry belongs to one consumer until it is consumed or released."""
    one, two = (client.LockingQueue("/locking") for client in clients[:2])
    one.put_all([b"a", b"b"])
    equal(one.get(5), b"a", "first entry")
    equal(two.get(5), b"b", "second entry")
    equal(one.consume(), True, "consume")
    equal(two.release(), True, "release")
    equal(one.get(5), b"b", "the released entry")
    equal(one.consume(), True, "consume of the released entry")
    equal(len(two), 0, "length at the end")


def counts(clients):
    def work(client):
        counter = client.Counter("/count")
        for _ in range(10):
            counter += 1

    finish([start(work, client) for client in clients])
    equal(clients[0].Counter("/count").value, 10 * len(clients), "counter")
    clients[0].Counter("/float", default=1.0)
    counter = clients[1].Counter("/float", default=1.0)
    counter -= 0.5
    equal(counter.value, 0.5, "counter of floats")


def leases(clients):
    hour = datetime.timedelta(hours=1)
    equal(bool(clients[0].NonBlockingLease("/lease", hour, identifier="a")), True, "first lease")
    equal(bool(clients[1].NonBlockingLease("/lease", hour, identifier="b")), False, "lease that is taken")
    equal(bool(clients[1].NonBlockingLease("/lease", hour, identifier="a")), True, "lease renewed by its holder")


with sessions(3) as three:
    plain(three)
    locking(three)
    counts(three)
    leases(three)
