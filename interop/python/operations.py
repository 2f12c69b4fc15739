"""Every operation of kazoo's client, with its results and its errors."""

from kazoo.exceptions import (
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import ACL, CREATOR_ALL_ACL, Id, OPEN_ACL_UNSAFE, make_digest_acl

from common import check, equal, raises, sessions


def creates(a):
    equal(a.create("/c", b"x"), "/c", "create")
    path, stat = a.create("/c/two", b"xy", include_data=True)
    equal((path, stat.version, stat.dataLength), ("/c/two", 0, 2), "create with stat")
    equal(a.create("/c/s-", sequence=True), "/c/s-0000000001", "sequential create")
    equal(a.create("/c/e", ephemeral=True), "/c/e", "ephemeral create")
    equal(a.exists("/c/e").owner_session_id, a.client_id[0], "owner of the ephemeral")
    equal(a.create("/c/x/y/z", makepath=True), "/c/x/y/z", "create with parents")
    a.ensure_path("/c/p/q")
    check(a.exists("/c/p/q"), "ensure_path made nothing")
    raises(NodeExistsError, a.create, "/c")
    raises(NoNodeError, a.create, "/none/child")
    raises(NoChildrenForEphemeralsError, a.create, "/c/e/child")
    raises(InvalidACLError, a.create, "/c/acl", b"", [ACL(31, Id("nosuch", "x"))])
    equal(a.create("/c/ünï-漢字", "ü".encode()), "/c/ünï-漢字", "create of a name in UTF-8")
    equal(a.get("/c/ünï-漢字")[0], "ü".encode(), "its data")


def data(a):
    a.create("/d", b"0")
    equal(a.set("/d", b"1").version, 1, "version after a set")
    equal(a.set("/d", b"2", version=1).version, 2, "version after a conditional set")
    raises(BadVersionError, a.set, "/d", b"3", version=1)
    value, stat = a.get("/d")
    equal((value, stat.version, stat.data_length), (b"2", 2, 1), "get")
    raises(NoNodeError, a.get, "/none")
    equal(a.exists("/none"), None, "exists of no node")
    a.set("/d", b"")
    equal(a.get("/d")[0], b"", "empty data")
    large = b"x" * 1000000
    a.set("/d", large)
    check(a.get("/d")[0] == large, "a megabyte did not come back")


def children(a):
    for name in "ab":
        a.create("/k/" + name, makepath=True)
    equal(sorted(a.get_children("/k")), ["a", "b"], "children")
    names, stat = a.get_children("/k", include_data=True)
    equal((sorted(names), stat.numChildren, stat.cversion), (["a", "b"], 2, 2), "children with stat")
    raises(NotEmptyError, a.delete, "/k")
    raises(BadVersionError, a.delete, "/k/a", version=5)
    a.delete("/k/a", version=0)
    a.delete("/k", recursive=True)
    equal(a.exists("/k"), None, "after a recursive delete")
    raises(NoNodeError, a.delete, "/k")


def acls(a, b):
    a.add_auth("digest", "ann:secret")
    a.create("/acl", b"v", acl=CREATOR_ALL_ACL)
    equal(a.get_acls("/acl")[0], [make_digest_acl("ann", "secret", all=True)], "the creator's ACL")
    for call in (b.get, b.get_children):
        raises(NoAuthError, call, "/acl")
    b.add_auth("digest", "ann:wrong")
    raises(NoAuthError, b.get, "/acl")
    b.add_auth("digest", "ann:secret")
    equal(b.get("/acl")[0], b"v", "get with the right credential")
    equal(b.set_acls("/acl", OPEN_ACL_UNSAFE).acl_version, 1, "version of the ACL")
    equal(b.get_acls("/acl")[0], OPEN_ACL_UNSAFE, "the new ACL")


def transactions(a):
    a.create("/t", b"0")
    t = a.transaction()
    t.create("/t/a")
    t.create("/t/s-", sequence=True)
    t.set_data("/t", b"1")
    t.check("/t", 1)
    t.delete("/t/a")
    results = t.commit()
    equal(results[0], "/t/a", "first result")
    equal(results[1], "/t/s-0000000001", "second result")
    equal(results[2].version, 1, "third result")
    equal(results[3:], [True, True], "check and delete")
    t = a.transaction()
    t.set_data("/t", b"2")
    t.check("/t", 77)
    t.delete("/t")
    classes = [type(result) for result in t.commit()]
    equal(classes, [RolledBackError, BadVersionError, RuntimeInconsistency], "results of a failing transaction")
    equal(a.get("/t")[0], b"1", "data after the failing transaction")


def others(a):
    equal(a.sync("/"), "/", "sync")
    equal(a.command(b"ruok"), "imok", "ruok")
    equal(a.server_version()[:1], (3,), "major version that srvr shows")
    check("Mode: standalone" in a.command(b"srvr"), a.command(b"srvr"))
    handles = [a.create_async("/async-%d" % i, str(i).encode()) for i in range(200)]
    equal([h.get(30) for h in handles], ["/async-%d" % i for i in range(200)], "two hundred creates in flight")
    reads = [a.get_async("/async-%d" % i) for i in range(200)]
    equal([r.get(30)[0] for r in reads], [str(i).encode() for i in range(200)], "two hundred reads in flight")


with sessions(2) as (first, second):
    creates(first)
    data(first)
    children(first)
    acls(first, second)
    transactions(first)
    others(first)
