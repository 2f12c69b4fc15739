"""One of several consumers with kazoo's Queue; it runs until it is killed.

Run as `consumer.py ADDRESS PATH`. Again and again it takes an item, prints @took
and the item. kazoo's Queue does not wait for items, so an empty queue is asked again.
"""

import random
import sys
import time

from kazoo.client import KazooClient

address, path = sys.argv[1:3]
client = KazooClient(hosts=address, timeout=3)
client.start(timeout=180)
queue = client.Queue(path)
while True:
    item = queue.get()
    if item is not None:
        print("@took", item.decode(), flush=True)
    time.sleep(random.uniform(0.001, 0.02))
