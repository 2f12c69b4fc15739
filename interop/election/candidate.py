"""A candidate that uses kazoo's Election, in a line with others.

Run as `candidate.py ADDRESS PARENT`. It prints @stands when its bid exists and
@leads when it leads, and resigns when the znode PARENT-release exists.
"""

import sys
import threading
import time

from kazoo.client import KazooClient

TIMEOUT = 180  # timeout of every wait, in seconds

address, parent = sys.argv[1:3]
client = KazooClient(hosts=address, timeout=10)
client.start(timeout=TIMEOUT)
election = client.Election(parent, "foreign")


def until(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within %d seconds" % TIMEOUT)
        time.sleep(0.01)


def lead():
    print("@leads", flush=True)
    until(lambda: client.exists(parent + "-release"))


runner = threading.Thread(target=election.run, args=(lead,), daemon=True)
runner.start()
until(lambda: "foreign" in election.contenders())
print("@stands", flush=True)
runner.join(TIMEOUT)
if runner.is_alive():
    raise AssertionError("the election has not ended")
client.stop()
