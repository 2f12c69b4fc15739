"""kazoo's DataWatch, ChildrenWatch and plain watches, also after a lost connection."""

import threading

from common import PROXY, ask, equal, sessions, until


def data_watch(client, writer):
    seen = []
    client.DataWatch("/data", lambda data, stat, event: seen.append((data, event and event.type)))
    until(lambda: seen == [(None, None)], "first call, with no node")
    writer.create("/data", b"1")
    until(lambda: seen[1:] == [(b"1", "CREATED")], "call at the creation, after " + str(seen))
    writer.set("/data", b"2")
    until(lambda: seen[2:] == [(b"2", "CHANGED")], "call at the change")
    threads = threading.active_count()
    ask("@down")
    until(lambda: not client.connected, "disconnect")
    writer.set("/data", b"3")
    ask("@up")
    until(lambda: seen[-1][0] == b"3", "call with what changed during the cut")
    read(client, writer, threads)
    writer.delete("/data")
    until(lambda: seen[-1] == (None, "DELETED"), "call at the deletion")


def read(client, writer, threads):
    """Waits until both reads that follow a cut are over. The end of the watches
    causes one, which is over before any later callback. The new connection
    causes the other, which runs in its own thread. Without the wait, a late
    read could already return the next change, and no event would show it.
    """
    called = []
    client.exists("/read", watch=called.append)
    writer.create("/read")
    until(lambda: called, "callback after the read")
    until(lambda: threading.active_count() <= threads, "end of the thread that reads")


def stopped(client, writer):
    """A watch function that returns False is not called again."""
    seen = []
    writer.create("/stop", b"1")

    @client.DataWatch("/stop")
    def once(data, stat):
        seen.append(data)
        return False

    until(lambda: seen == [b"1"], "first call")
    writer.set("/stop", b"2")
    client.get("/stop")
    equal(seen, [b"1"], "calls after the function returned False")


def children_watch(client, writer):
    seen = []
    writer.create("/kids")
    client.ChildrenWatch("/kids", lambda names: seen.append(sorted(names)))
    until(lambda: seen == [[]], "first call")
    for count, name in enumerate("abc", 2):
        writer.create("/kids/" + name)
        until(lambda: len(seen) == count, "call for child " + name)
    writer.delete("/kids/b")
    until(lambda: seen[-1] == ["a", "c"], "call at the deletion of a child")
    equal(seen, [[], ["a"], ["a", "b"], ["a", "b", "c"], ["a", "c"]], "lists")


def plain(client, writer):
    """One-shot watches of get, exists and get_children, with their types."""
    events = []
    note = lambda event: events.append((event.type, event.path))
    client.exists("/plain", watch=note)
    writer.create("/plain")
    until(lambda: events == [("CREATED", "/plain")], "event of exists")
    client.get("/plain", watch=note)
    client.get_children("/plain", watch=note)
    writer.create("/plain/child")
    until(lambda: events[1:] == [("CHILD", "/plain")], "event of get_children")
    writer.set("/plain", b"x")
    writer.set("/plain", b"y")
    until(lambda: events[2:] == [("CHANGED", "/plain")], "event of get")
    client.get("/plain")
    equal(len(events), 3, "events in all")


with sessions(1, PROXY) as (watcher,), sessions(1) as (author,):
    data_watch(watcher, author)
    stopped(watcher, author)
    children_watch(watcher, author)
    plain(watcher, author)
