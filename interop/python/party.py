"""kazoo's Party, ShallowParty and SetPartitioner: the members, and the assignment of a set."""

from common import equal, sessions, until


def members(clients, kind):
    """Members appear, leave, and disappear with their session."""
    path = "/" + kind
    make = lambda client, name: getattr(client, kind)(path, name)
    one, two = make(clients[0], "one"), make(clients[1], "two")
    equal(len(one), 0, "members of an empty party")
    one.join()
    two.join()
    equal(set(one), {"one", "two"}, "members")
    with sessions(1) as (guest,):
        make(guest, "guest").join()
        equal(len(two), 3, "members with a guest")
    until(lambda: set(one) == {"one", "two"}, "the guest's member node goes with its session")
    two.leave()
    equal(list(one), ["one"], "members after one left")
    one.leave()


def partitions(clients):
    """Two workers share a set without overlap, and one takes all when alone."""
    whole = {"a", "b", "c", "d"}
    first = clients[0].SetPartitioner("/parts", whole, identifier="1", time_boundary=0.5)
    settle(first)
    equal(set(first), whole, "share of the only worker")
    second = clients[1].SetPartitioner("/parts", whole, identifier="2", time_boundary=0.5)
    until(lambda: first.release, "the first worker is asked to release")
    first.release_set()
    settle(first, second)
    equal(set(first) | set(second), whole, "both shares")
    equal(len(list(first)), len(list(second)), "sizes of both shares")
    second.finish()
    until(lambda: first.release, "the first worker is asked to release again")
    first.release_set()
    settle(first)
    equal(set(first), whole, "share of the worker that is left")
    first.finish()


def settle(*workers):
    def step():
        for worker in workers:
            if worker.allocating:
                worker.wait_for_acquire(0.1)
            elif worker.release:
                worker.release_set()
        return all(worker.acquired for worker in workers)

    until(step, "all workers have a share")


with sessions(2) as two:
    members(two, "Party")
    members(two, "ShallowParty")
    partitions(two)
