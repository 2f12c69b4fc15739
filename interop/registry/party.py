"""A member of kazoo's Party and of its ShallowParty.

Run as `party.py SERVER PREFIX`. It prints @seen when it sees the test's members,
which are called go, and ends when PREFIX/release exists.
"""

import sys
import time

from kazoo.client import KazooClient

server, prefix = sys.argv[1:3]
client = KazooClient(hosts=server, timeout=10.0)
client.start(timeout=180)
parties = [client.Party(prefix + "/party", "python"), client.ShallowParty(prefix + "/shallow", "python")]
for party in parties:
    party.join()


def until(condition, what):
    end = time.monotonic() + 180
    while not condition():
        if time.monotonic() > end:
            sys.exit("not in time: " + what)
        time.sleep(0.01)


until(lambda: all(set(party) == {"go", "python"} for party in parties), "the members go and python")
print("@seen", flush=True)
until(lambda: client.exists(prefix + "/release"), "release")
client.stop()
client.close()
