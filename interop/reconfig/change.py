"""Changes the membership of an ensemble with kazoo, as `change.py SERVER PASSWORD JOINING LEAVING MEMBERS`.

An argument "-" stands for none. It prints the new configuration.
"""

import sys

from kazoo.client import KazooClient

SERVER, PASSWORD = sys.argv[1:3]
JOINING, LEAVING, MEMBERS = (None if a == "-" else a for a in sys.argv[3:6])

client = KazooClient(hosts=SERVER, timeout=30.0, auth_data=[("digest", "super:" + PASSWORD)])
client.start(timeout=180)
before, stat = client.get("/zookeeper/config")
data, changed = client.reconfig(joining=JOINING, leaving=LEAVING, new_members=MEMBERS, from_config=-1)
print(data.decode())
if changed.mzxid <= stat.mzxid:
    sys.exit("the configuration is older than the one before")
try:
    client.reconfig(joining=JOINING, leaving=LEAVING, new_members=MEMBERS, from_config=1)
    sys.exit("a change of a configuration that is not the present one is accepted")
except Exception as e:
    if type(e).__name__ != "BadVersionError":
        raise
client.stop()
