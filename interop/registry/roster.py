"""A member of kazoo's Party and of its ShallowParty; it runs until it is killed.

Run as `roster.py SERVER PREFIX ID`. Whenever both have the same members, and these
have changed, it prints @sees and their ids.
"""

import sys
import time

from kazoo.client import KazooClient

server, prefix, me = sys.argv[1:4]
client = KazooClient(hosts=server, timeout=3.0)
client.start(timeout=180)
parties = [client.Party(prefix + "/party", me), client.ShallowParty(prefix + "/shallow", me)]
for party in parties:
    party.join()
last = ""
while True:
    now, shallow = (",".join(sorted(set(party))) for party in parties)
    if now == shallow and now != last:
        last = now
        print("@sees " + now, flush=True)
    time.sleep(0.01)
