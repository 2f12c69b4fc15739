"""Random operations on few znodes. Their errors are expected; the client must stay connected."""

import random

from kazoo.exceptions import KazooException
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from common import check, sessions

STEPS = 300  # of each client


def multi(client, pick):
    t = client.transaction()
    t.create(pick(), b"multi")
    t.set_data(pick(), b"set")
    t.check(pick(), 0)
    t.commit()


def work(client, rand):
    paths = ["/a", "/b", "/a/c", "/b/d"]

    def pick():
        return rand.choice(paths)

    steps = [
        lambda: client.create(pick(), b"x", acl=rand.choice([OPEN_ACL_UNSAFE, CREATOR_ALL_ACL])),
        lambda: client.create(pick(), b"y", ephemeral=True, include_data=True),
        lambda: client.create("/s-", sequence=True),
        lambda: client.set(pick(), b"%d" % rand.getrandbits(32), rand.randint(-1, 3)),
        lambda: client.delete(pick(), rand.randint(-1, 3)),
        lambda: client.set_acls(pick(), OPEN_ACL_UNSAFE, rand.randint(-1, 1)),
        lambda: client.get(pick()),
        lambda: client.exists(pick()),
        lambda: client.get_children(pick()),
        lambda: client.get_children(pick(), include_data=True),
        lambda: client.get_acls(pick()),
        lambda: client.sync(pick()),
        lambda: multi(client, pick),
    ]
    for _ in range(STEPS):
        try:
            rand.choice(steps)()
        except KazooException:
            pass


with sessions(2) as (first, second):
    second.add_auth("digest", "user:pw")
    for seed in range(2):
        work((first, second)[seed], random.Random(seed))
    check(first.connected and second.connected, "a client lost its connection")
