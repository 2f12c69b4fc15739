"""A kazoo client that accepts a read-only server.

Run as `reader.py HOSTS`. It prints @alone to have all servers of HOSTS except the
first stopped, and @whole to have them restarted.
"""

import socket
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NotReadOnlyCallError
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

HOSTS = sys.argv[1]
TIMEOUT = 180  # timeout of every wait, in seconds


def connect():
    client = KazooClient(
        hosts=HOSTS,
        timeout=10.0,
        read_only=True,
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5),
    )
    client.start(timeout=TIMEOUT)
    return client


def until(condition, what):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("not within %d s: %s" % (TIMEOUT, what))
        time.sleep(0.01)


def ask(command):
    print(command, flush=True)


def is_alone():
    """Asks the remaining server whether it is read-only."""
    host, port = HOSTS.split(",")[0].split(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as s:
        s.sendall(b"isro")
        return s.recv(8).strip() == b"ro"


def refused(call, *args):
    try:
        call(*args)
    except NotReadOnlyCallError:
        return
    raise AssertionError("%s is carried out" % call)


writer = connect()
assert writer.client_state == KeeperState.CONNECTED, writer.client_state
writer.create("/kazoo-reads", b"v")
writer.stop()
writer.close()

ask("@alone")
until(is_alone, "one server is left")
reader = connect()
assert reader.client_state == KeeperState.CONNECTED_RO, reader.client_state
value, stat = reader.get("/kazoo-reads")
assert value == b"v" and stat.version == 0, (value, stat)
assert "kazoo-reads" in reader.get_children("/")
assert reader.exists("/none", watch=lambda event: None) is None
refused(reader.set, "/kazoo-reads", b"w")
refused(reader.create, "/none", b"")
refused(reader.delete, "/kazoo-reads")
refused(reader.sync, "/")
transaction = reader.transaction()
transaction.check("/kazoo-reads", 0)
refused(transaction.commit)

ask("@whole")
until(lambda: reader.client_state == KeeperState.CONNECTED, "a server with a quorum")
reader.retry(reader.set, "/kazoo-reads", b"w")
reader.stop()
reader.close()
