"""Clients of kazoo that hold a lock in turn while servers are replaced.

Run as `takeover.py HOSTS OPTIONS`. OPTIONS is a JSON object with further arguments of
KazooClient. Each holder of the lock increments a counter. When standard input ends, the
clients stop, and the script prints what they counted as JSON; see program in takeover_programs_test.go.
"""

import collections
import json
import sys
import threading
import time

import kazoo.security
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import AuthFailedError, ConnectionDropped, KazooException
from kazoo.protocol.connection import ConnectionHandler
from kazoo.retry import KazooRetry

CLIENTS = 3
SESSION = 50.0  # seconds
TIMEOUT = 180  # of every wait, in seconds
PAUSE = 0.01  # between two turns of a client, in seconds
COUNTER = "/kazoo/counter"

counts = collections.Counter(sessions=CLIENTS)
errors = collections.Counter()
holders = 0
guard = threading.Lock()
stop = threading.Event()


login = ConnectionHandler._authenticate_with_sasl


def login_again(self, host, timeout):
    """Makes a client connect again whose connection ends during a login.

    Kazoo takes this for a wrong password and ends the session, also if the server is only being stopped.
    """
    try:
        login(self, host, timeout)
    except AuthFailedError as e:
        if "Connection dropped" in str(e):
            raise ConnectionDropped(str(e))
        raise


ConnectionHandler._authenticate_with_sasl = login_again


def count(what, name):
    with guard:
        what[name] += 1


def connect():
    retry = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5}
    options = json.loads(sys.argv[2])
    if "sasl_options" in options:
        options["default_acl"] = kazoo.security.CREATOR_ALL_ACL
    client = KazooClient(
        hosts=sys.argv[1],
        timeout=SESSION,
        connection_retry=KazooRetry(**retry),
        command_retry=KazooRetry(**retry),
        **options,
    )
    client.add_listener(lambda state: count(counts, "lost") if state == KazooState.LOST and not stop.is_set() else None)
    client.start(timeout=TIMEOUT)
    return client


def increment(client):
    """Increments the counter, which only the holder of the lock may do."""
    global holders
    with guard:
        holders += 1
        counts["overlaps"] += holders - 1
    try:
        value, stat = client.get(COUNTER)
        try:
            client.set(COUNTER, str(int(value) + 1).encode(), version=stat.version)
        except KazooException:
            count(counts, "unsure")
            raise
        count(counts, "increments")
    finally:
        with guard:
            holders -= 1


def work(client):
    while not stop.is_set():
        try:
            with client.Lock("/kazoo/lock"):
                increment(client)
        except KazooException as e:
            count(errors, type(e).__name__)
        time.sleep(PAUSE)


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
print(json.dumps(dict(counts, errors=errors)))
for client in clients:
    client.stop()
