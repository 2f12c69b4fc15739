"""kazoo's Lock, ReadLock, WriteLock and Semaphore."""

import threading

from kazoo.exceptions import LockTimeout

from common import PROXY, ask, check, equal, finish, raises, sessions, start, until


def counts(clients):
    """Increments of an unguarded counter are not lost under the lock."""
    clients[0].create("/counter", b"0")

    def work(client):
        lock = client.Lock("/lock", "worker")
        for _ in range(15):
            with lock:
                value = int(client.get("/counter")[0])
                client.set("/counter", str(value + 1).encode())

    finish([start(work, client) for client in clients])
    equal(clients[0].get("/counter")[0], b"45", "counter after 3 x 15 increments")


def refuses(clients):
    """Acquiring a held lock fails at once or after the given timeout."""
    a, b = clients[0].Lock("/held", "a"), clients[1].Lock("/held", "b")
    check(a.acquire(), "a free lock was not given")
    equal(b.acquire(blocking=False), False, "acquire of a held lock")
    raises(LockTimeout, b.acquire, timeout=0.2)
    equal(b.contenders(), ["a"], "contenders after a time-out")
    a.release()
    check(b.acquire(timeout=180), "a released lock was not given")
    b.release()


def reads_and_writes(clients):
    """Readers share, a writer is alone."""
    one, two, writer = (
        clients[0].ReadLock("/rw"),
        clients[1].ReadLock("/rw"),
        clients[2].WriteLock("/rw"),
    )
    check(one.acquire(timeout=180) and two.acquire(timeout=180), "readers do not share")
    equal(writer.acquire(blocking=False), False, "writer beside readers")
    got = threading.Event()
    waiter = start(lambda: writer.acquire(timeout=180) and got.set())
    until(lambda: len(clients[0].get_children("/rw")) == 3, "the writer's bid")
    one.release()
    check(not got.is_set(), "writer beside a reader")
    two.release()
    check(got.wait(180), "no turn for the writer")
    equal(one.acquire(blocking=False), False, "reader beside a writer")
    writer.release()
    finish([waiter])


def leases(clients):
    """A semaphore gives out no more leases than it has."""
    slots = [client.Semaphore("/semaphore", max_leases=2) for client in clients]
    check(slots[0].acquire() and slots[1].acquire(), "two leases of two were not given")
    equal(slots[2].acquire(blocking=False), False, "third lease of two")
    equal(len(slots[0].lease_holders()), 2, "holders")
    waiter = start(slots[2].acquire)
    slots[0].release()
    finish([waiter])
    for slot in slots[1:]:
        slot.release()


def survives_cut(client):
    """A lock survives a lost connection, as its session does."""
    with sessions(1, PROXY) as (away,):
        lock = away.Lock("/cut", "away")
        check(lock.acquire(timeout=180), "a free lock was not given")
        session = away.client_id
        states = []
        away.add_listener(states.append)
        ask("@cut")
        until(lambda: "SUSPENDED" in states and "CONNECTED" in states, "cut and reconnect")
        equal(away.client_id, session, "session after the cut")
        equal(client.Lock("/cut", "b").acquire(blocking=False), False, "lock of a session that was cut")
        lock.release()
        check(client.Lock("/cut", "b").acquire(timeout=180), "a released lock was not given")


with sessions(3) as three:
    counts(three)
    refuses(three)
    reads_and_writes(three)
    leases(three)
    survives_cut(three[0])
