"""kazoo's Barrier and DoubleBarrier."""

import threading

from common import check, equal, finish, sessions, start


def single(clients):
    """A barrier blocks all clients until it is removed."""
    barrier = clients[0].Barrier("/barrier")
    barrier.create()
    equal(clients[1].Barrier("/barrier").wait(timeout=0.2), False, "wait at a closed barrier")
    passed = threading.Event()
    waiter = start(lambda: clients[1].Barrier("/barrier").wait(timeout=180) and passed.set())
    equal(barrier.remove(), True, "removal")
    check(passed.wait(180), "nobody passed the removed barrier")
    equal(barrier.remove(), False, "second removal")
    finish([waiter])


def double(clients):
    """Nobody passes before all have arrived; nobody leaves before all are done."""
    meeting = threading.Barrier(len(clients), timeout=180)
    came, left, lock = [], [], threading.Lock()

    def work(client, name):
        barrier = client.DoubleBarrier("/double", len(clients), name)
        with lock:
            came.append(name)
        barrier.enter()
        check(barrier.participating, name, "is not counted")
        equal(len(came), len(clients), "those who came when one entered")
        meeting.wait()
        with lock:
            left.append(name)
        barrier.leave()
        equal(len(left), len(clients), "those who were done when one left")

    finish([start(work, client, "p%d" % i) for i, client in enumerate(clients)])
    equal(clients[0].exists("/double/ready"), None, "the ready node after all have left")


with sessions(4) as four:
    single(four)
    double(four)
    double(four)  # a double barrier can be used again
