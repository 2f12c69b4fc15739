"""kazoo's TreeCache: it follows a tree, also after a lost connection."""

from kazoo.recipe.cache import TreeCache, TreeEvent

from common import PROXY, ask, check, equal, sessions, until

NAMES = {value: name for name, value in vars(TreeEvent).items() if isinstance(value, int)}


def follow(client, writer):
    writer.create("/tree/a", b"1", makepath=True)
    writer.create("/tree/b/c", b"2", makepath=True)
    seen = []
    cache = TreeCache(client, "/tree")
    cache.listen(lambda event: seen.append((NAMES[event.event_type], event.event_data and event.event_data.path)))
    cache.listen_fault(lambda error: seen.append(("FAULT", repr(error))))
    cache.start()
    wait(seen, "INITIALIZED", None)
    for path in ("/tree", "/tree/a", "/tree/b", "/tree/b/c"):
        wait(seen, "NODE_ADDED", path)
    equal(cache.get_data("/tree/a").data, b"1", "data in the cache")
    equal(sorted(cache.get_children("/tree")), ["a", "b"], "children in the cache")

    writer.set("/tree/a", b"11")
    wait(seen, "NODE_UPDATED", "/tree/a")
    writer.create("/tree/b/c/d", b"3")
    wait(seen, "NODE_ADDED", "/tree/b/c/d")
    writer.delete("/tree/b/c", recursive=True)
    wait(seen, "NODE_REMOVED", "/tree/b/c/d")
    wait(seen, "NODE_REMOVED", "/tree/b/c")
    equal(cache.get_data("/tree/a").data, b"11", "data in the cache after a change")

    ask("@down")
    wait(seen, "CONNECTION_SUSPENDED", None)
    writer.set("/tree/a", b"111")
    writer.create("/tree/e", b"4")
    ask("@up")
    wait(seen, "CONNECTION_RECONNECTED", None)
    wait(seen, "NODE_ADDED", "/tree/e")
    until(lambda: cache.get_data("/tree/a").data == b"111", "what changed during the cut is in the cache")
    check(not [event for event in seen if event[0] == "FAULT"], seen)
    cache.close()


def wait(seen, name, path):
    until(lambda: (name, path) in seen, "event %s of %s in %s" % (name, path, seen))


with sessions(1, PROXY) as (watcher,), sessions(1) as (author,):
    follow(watcher, author)
