"""kazoo's Election: one leader at a time, in the order of arrival, and the next
one when a leader resigns, closes its session or loses it."""

import threading

from common import PROXY, ask, check, equal, finish, sessions, start, until


def in_turn(clients):
    """Each candidate leads once, alone, in the order of arrival."""
    order, inside = [], threading.Semaphore(1)

    def lead(name):
        check(inside.acquire(blocking=False), "two leaders at once")
        order.append(name)
        inside.release()

    release, elections, threads = threading.Event(), [], []

    def first():
        release.wait(180)
        lead("0")

    for i, client in enumerate(clients):
        election = client.Election("/election", str(i))
        elections.append(election)
        work = first if i == 0 else (lambda name=str(i): lead(name))
        threads.append(start(election.run, work))
        until(lambda: len(election.contenders()) == i + 1, "candidate %d in the list" % i)
    equal(elections[0].contenders(), ["0", "1", "2"], "contenders")
    release.set()
    finish(threads)
    equal(order, ["0", "1", "2"], "order of leaders")


def cancelled(clients):
    """A candidate that cancels never leads and is removed from the list."""
    a, b = clients[:2]
    leading, release, led = threading.Event(), threading.Event(), []

    def hold():
        leading.set()
        release.wait(180)

    holder = start(a.Election("/cancel", "a").run, hold)
    check(leading.wait(180), "the only candidate does not lead")
    election = b.Election("/cancel", "b")
    waiter = start(election.run, led.append, "b")
    until(lambda: len(election.contenders()) == 2, "both candidates in the list")
    election.cancel()
    finish([waiter])
    release.set()
    finish([holder])
    equal(led, [], "terms of the candidate that cancelled")


def session_closed(clients):
    """When the leader's session is closed, the next candidate leads."""
    with sessions(1) as (gone,):
        leading, next_leads = threading.Event(), threading.Event()
        gone.Election("/closed", "gone").lock.acquire(timeout=180)
        leading.set()
        waiter = start(clients[0].Election("/closed", "next").run, next_leads.set)
        until(lambda: len(clients[1].get_children("/closed")) == 2, "two candidates")
        check(not next_leads.is_set(), "two leaders")
    check(next_leads.wait(180), "nobody leads after the leader's session was closed")
    finish([waiter])


def session_lost(clients):
    """When the leader is cut off until its session expires, the next candidate leads."""
    with sessions(1, PROXY) as (gone,):
        next_leads = threading.Event()
        gone.Election("/lost", "gone").lock.acquire(timeout=180)
        waiter = start(clients[0].Election("/lost", "next").run, next_leads.set)
        until(lambda: len(clients[1].get_children("/lost")) == 2, "two candidates")
        ask("@down")
        check(next_leads.wait(180), "nobody leads after the leader's session was lost")
        ask("@up")
        finish([waiter])
        until(lambda: gone.connected, "the old leader is back with a new session")


with sessions(3) as three:
    in_turn(three)
    cancelled(three)
    session_closed(three)
    session_lost(three)
