"""Faults on demand, from Python: checks the effect of each call on kazoo's client.

Run as `faults.py SERVERS URL`, of `bellwether serve --ensemble 3 --faults`.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss

servers, url = sys.argv[1:3]
TIMEOUT = 180  # timeout of every wait, in seconds


def fault(path):
    """Makes a call; a refusal raises an HTTPError."""
    urllib.request.urlopen(urllib.request.Request(url + path, method="POST"), timeout=TIMEOUT).close()


def standing():
    """Returns the state of the servers and the active faults."""
    with urllib.request.urlopen(url + "/", timeout=TIMEOUT) as answer:
        return json.load(answer)


def number(role):
    """Returns the number of a server in this role."""
    return until(lambda: next((s["id"] for s in standing()["servers"] if s["role"] == role), None), role)


def connect(hosts=servers, timeout=6.0):
    client = KazooClient(hosts=hosts, timeout=timeout)
    client.start(timeout=TIMEOUT)
    return client


def until(condition, what):
    """Waits for a condition and returns its value."""
    end = time.monotonic() + TIMEOUT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("not in time: " + what)
        time.sleep(0.01)


def states(client):
    """Returns the later connection states of a client."""
    seen = []
    client.add_listener(lambda state: seen.append(state) and None)
    return seen


def session_expires():
    client, other = connect(), connect()
    client.create("/mine", ephemeral=True)
    seen = states(client)
    fault("/sessions/%d/expire" % client.client_id[0])
    until(lambda: KazooState.LOST in seen, "the client hears that its session is over")
    until(lambda: other.sync("/") and not other.exists("/mine"), "the ephemeral goes")
    client.stop()
    other.stop()


def reply_is_lost():
    client = connect()
    fault("/replies/create/lose")
    try:
        client.create("/lost")
    except ConnectionLoss:
        pass
    else:
        raise AssertionError("the reply was not lost")
    assert "replies" not in standing()
    until(lambda: client.connected, "connected again")
    assert client.retry(client.exists, "/lost"), "the create was not carried out"
    client.stop()


def watch_is_late():
    client = connect()
    client.create("/watched", b"old")
    came = threading.Event()
    client.get("/watched", watch=lambda event: came.set())
    fault("/watches/delay?by=500ms")
    began = time.monotonic()
    client.set_async("/watched", b"new")
    assert came.wait(TIMEOUT) and time.monotonic() - began >= 0.5, "the event was not late"
    fault("/watches/delay?by=0s")
    client.stop()


def link_is_late():
    client = connect()
    session = "0x%x" % client.client_id[0]
    fault("/links/everyone/%s/delay?by=300ms&oneway" % session)
    began = time.monotonic()
    client.get("/")
    assert time.monotonic() - began >= 0.3, "the answer was not late"
    fault("/heal")
    client.stop()


def link_is_cut():
    client = connect(timeout=3.0)
    session = client.client_id[0]
    seen = states(client)
    fault("/links/everyone/0x%x/cut?oneway" % session)
    until(lambda: KazooState.SUSPENDED in seen, "the client hears nothing more")
    fault("/links/everyone/0x%x/mend?oneway" % session)
    until(lambda: seen[-1] == KazooState.CONNECTED, "the client is back")
    client.stop()


def leader_pauses():
    leader = number("leader")
    others = [s["address"] for s in standing()["servers"] if s["id"] != leader]
    client = connect(",".join(others))
    client.create("/paused", b"before")
    fault("/servers/%d/pause" % leader)
    assert number("paused") == leader
    assert number("leader") != leader
    client.retry(client.set, "/paused", b"after")
    fault("/servers/%d/resume" % leader)
    fault("/await")
    assert number("leader") != leader
    client.stop()


def server_crashes():
    follower = number("follower")
    fault("/servers/%d/crash" % follower)
    assert number("down") == follower
    try:
        fault("/servers/%d/pause" % follower)
    except urllib.error.HTTPError as e:
        assert e.code == 409 and "does not run" in json.load(e)["error"], e
    else:
        raise AssertionError("a server that is down was paused")
    fault("/servers/%d/start" % follower)
    fault("/await")
    address = next(s["address"] for s in standing()["servers"] if s["id"] == follower)
    client = connect(address)
    client.sync("/")
    assert client.get("/paused")[0] == b"after", "what was acknowledged is lost"
    client.stop()


def clock_is_skewed():
    leader = number("leader")
    fault("/servers/%d/skew?by=-1000h" % leader)
    client = connect()
    client.create("/early")
    early = time.time() - client.exists("/early").ctime / 1000
    assert early >= 1000 * 3600, "the clock is right: %d s" % early
    fault("/servers/%d/skew?by=0s" % leader)
    client.stop()


for scene in (session_expires, reply_is_lost, watch_is_late, link_is_late, link_is_cut, leader_pauses, server_crashes, clock_is_skewed):
    scene()
    print(scene.__name__, flush=True)
