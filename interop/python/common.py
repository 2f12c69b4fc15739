"""What the kazoo scripts share: sessions, waiting, and the test's proxy.

Each script is run as `script.py DIRECT PROXY PREFIX`: two addresses of one
server, of which the second can be cut, and a path that is the script's own. It
exits with 1 and a traceback when an expectation does not hold.
"""

import contextlib
import os
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

TIMEOUT = 180  # timeout of every wait, in seconds
SESSION = 10.0  # requested session timeout, in seconds

DIRECT, PROXY, PREFIX = sys.argv[1:4]


@contextlib.contextmanager
def sessions(count, hosts=None):
    """Yields this many started clients with the script's prefix as chroot."""
    clients = [connect(hosts) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.stop()
            client.close()


def make_prefix():
    client = KazooClient(hosts=DIRECT, timeout=SESSION)
    client.start(timeout=TIMEOUT)
    client.ensure_path(PREFIX)
    client.stop()
    client.close()


def connect(hosts=None):
    """Returns one started client below the prefix."""
    client = KazooClient(
        hosts=(hosts or DIRECT) + PREFIX,
        timeout=SESSION,
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5),
    )
    client.start(timeout=TIMEOUT)
    return client


def check(condition, *what):
    """An assertion that also holds under python -O, and says what it saw."""
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def equal(got, want, what):
    check(got == want, what + ":", "got", repr(got) + ",", "want", repr(want))


def until(condition, what):
    """Waits for a condition and returns its value."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not within %d s: %s" % (TIMEOUT, what))
        time.sleep(0.01)


def raises(error, call, *args, **kwargs):
    """Checks that a call fails with exactly this class of error."""
    try:
        got = call(*args, **kwargs)
    except Exception as e:  # any other class is the failure to report
        check(type(e) is error, call, args, "raised", repr(e), "instead of", error.__name__)
    else:
        raise AssertionError("%s%s returned %r instead of raising %s" % (call, args, got, error.__name__))


def ask(command):
    """Prints a command for the test: @cut, @down or @up."""
    print(command, flush=True)


def start(work, *args):
    """Runs work in a thread whose failure ends the script."""

    def run():
        try:
            work(*args)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def finish(threads):
    for thread in threads:
        thread.join(TIMEOUT)
        check(not thread.is_alive(), "a thread did not end within", TIMEOUT, "s")


make_prefix()  # a chroot has to exist before it is used
