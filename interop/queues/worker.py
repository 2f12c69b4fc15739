"""One of several consumers with kazoo's LockingQueue; it runs until it is killed.

Run as `worker.py ADDRESS PATH`. Again and again it takes an item, prints @took
and the item, works for a moment, acknowledges it and prints @done and the item.
"""

import random
import sys
import time

from kazoo.client import KazooClient

address, path = sys.argv[1:3]
client = KazooClient(hosts=address, timeout=3)
client.start(timeout=180)
queue = client.LockingQueue(path)
while True:
    item = queue.get(60)
    if item is None:
        continue
    print("@took", item.decode(), flush=True)
    time.sleep(random.uniform(0.005, 0.03))
    if not queue.consume():
        raise AssertionError("the item of this worker was not acknowledged")
    print("@done", item.decode(), flush=True)
