"""kazoo's Queue and LockingQueue, used together with Bellwether's queues.

Run as `ends.py ADDRESS PATH`. It takes the items of the queues at PATH and
PATH-work, in their order, and then adds items to each queue.
"""

import sys

from kazoo.client import KazooClient


def equal(got, want, what):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


address, path = sys.argv[1:3]
client = KazooClient(hosts=address, timeout=10)
client.start(timeout=180)

queue = client.Queue(path)
equal([queue.get() for _ in range(4)], [b"urgent", b"first", b"second", None], "items of ours")
queue.put(b"later", priority=200)
queue.put(b"sooner")

work = client.LockingQueue(path + "-work")
equal(work.get(60), b"job", "an item of ours")
equal(work.consume(), True, "acknowledged")
work.put(b"low", priority=200)
work.put(b"high", priority=1)
equal(work.get(60), b"high", "an item of its own")
client.stop()  # stop releases the item
