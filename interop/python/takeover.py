"""Clients of kazoo that hold a lock in turn while servers are replaced.

Run as `takeover.py HOSTS`. Each holder of the lock increments a counter. When
standard input ends, the clients stop, and the script prints what they saw as JSON.
"""

import collections
import json
import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.retry import KazooRetry

CLIENTS = 3
SESSION = 50.0  # seconds
TIMEOUT = 180  # of every wait, in seconds
COUNTER = "/kazoo/counter"

seen = collections.Counter()  # increments, unsure, overlaps, lost, and error NAME
holders = 0
guard = threading.Lock()
stop = threading.Event()


def count(name):
    with guard:
        seen[name] += 1


def connect():
    retry = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5}
    client = KazooClient(
        hosts=sys.argv[1],
        timeout=SESSION,
        connection_retry=KazooRetry(**retry),
        command_retry=KazooRetry(**retry),
    )
    client.add_listener(lambda state: count("lost") if state == KazooState.LOST and not stop.is_set() else None)
    client.start(timeout=TIMEOUT)
    return client


def increment(client):
    """Increments the counter, which only the holder of the lock may do."""
    global holders
    with guard:
        holders += 1
        seen["overlaps"] += holders - 1
    try:
        value, stat = client.get(COUNTER)
        try:
            client.set(COUNTER, str(int(value) + 1).encode(), version=stat.version)
        except KazooException:
            count("unsure")
            raise
        count("increments")
    finally:
        with guard:
            holders -= 1


def work(client):
    while not stop.is_set():
        try:
            with client.Lock("/kazoo/lock"):
                increment(client)
        except KazooException as e:
            count("error " + type(e).__name__)


clients = [connect() for _ in range(CLIENTS)]
clients[0].ensure_path("/kazoo")
clients[0].create(COUNTER, b"0")
threads = [threading.Thread(target=work, args=(client,), daemon=True) for client in clients]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join(TIMEOUT)
    if thread.is_alive():
        sys.exit("a client does not get the lock")
clients[0].sync(COUNTER)
seen["counter"] = int(clients[0].get(COUNTER)[0])
print(json.dumps(seen))
for client in clients:
    client.stop()
