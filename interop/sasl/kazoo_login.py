"""Logs in to a server with kazoo, and prints what the server answers. The arguments are the server, the
id that the login gives, the mechanism, and for DIGEST-MD5 the user and the password."""

import sys

import kazoo.client
import kazoo.exceptions
import kazoo.security

server, identity, mechanism = sys.argv[1:4]
options = {"mechanism": mechanism}
if mechanism == "DIGEST-MD5":
    options.update(username=sys.argv[4], password=sys.argv[5])
client = kazoo.client.KazooClient(hosts=server, timeout=30.0, sasl_options=options)


def say(what, request):
    try:
        outcome = request()
    except kazoo.exceptions.KazooException as e:
        outcome = type(e).__name__
    print(f"{what}: {outcome}", flush=True)


def login():
    client.start(timeout=180)
    return "connected"


say("login", login)
if client.connected:
    own = kazoo.security.make_acl("sasl", identity, all=True)
    other = kazoo.security.make_acl("sasl", "carl", all=True)
    say("create", lambda: client.create("/kazoo", b"x", acl=[own]))
    say("get", lambda: client.get("/kazoo")[0])
    say("get_acls", lambda: client.get_acls("/kazoo")[0])
    say("create for another", lambda: client.create("/kazoos", b"x", acl=[other]))
    say("get of another", lambda: client.get("/kazoos")[0])
client.stop()
