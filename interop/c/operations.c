/* Every operation of the C library, with results and errors. */
#include "check.h"

static void creates(struct session *s) {
    char path[PATH];
    struct Stat stat;
    WANT(ZOK, zoo_create(s->zh, "/a", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    CHECK(strcmp(path, "/a") == 0, "made %s", path);
    WANT(ZNODEEXISTS, zoo_create(s->zh, "/a", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    WANT(ZNONODE, zoo_create(s->zh, "/none/child", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    WANT(ZINVALIDACL, zoo_create(s->zh, "/b", "x", 1, NULL, 0, path, sizeof path));
    WANT(ZBADARGUMENTS, zoo_create(s->zh, "/a//b", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));

    WANT(ZOK, zoo_create(s->zh, "/a/s-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path));
    CHECK(strcmp(path, "/a/s-0000000000") == 0, "made %s", path);
    WANT(ZOK, zoo_create2(s->zh, "/a/e-", "xyz", 3, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, path, sizeof path,
                          &stat));
    CHECK(strcmp(path, "/a/e-0000000001") == 0, "made %s", path);
    CHECK(stat.ephemeralOwner == zoo_client_id(s->zh)->client_id && stat.dataLength == 3, "owner %llx, length %d",
          (long long)stat.ephemeralOwner, stat.dataLength);
    WANT(ZNOCHILDRENFOREPHEMERALS,
         zoo_create(s->zh, "/a/e-0000000001/child", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));

    WANT(ZOK, zoo_create2(s->zh, "/box", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, path, sizeof path, &stat));
    WANT(ZOK, zoo_create2_ttl(s->zh, "/ttl", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 3600000, path,
                              sizeof path, &stat));
    WANT(ZOK, zoo_create_ttl(s->zh, "/ttl-", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL,
                             3600000, path, sizeof path));
    CHECK(strcmp(path, "/ttl-0000000003") == 0, "made %s", path);
}

static void data(struct session *s) {
    char buffer[16];
    int n = sizeof buffer;
    struct Stat stat;
    make(s, "/d", "0");
    WANT(ZOK, zoo_set(s->zh, "/d", "1", 1, -1));
    WANT(ZOK, zoo_set2(s->zh, "/d", "two", 3, 1, &stat));
    CHECK(stat.version == 2 && stat.mzxid > stat.czxid, "version %d", stat.version);
    WANT(ZBADVERSION, zoo_set(s->zh, "/d", "3", 1, 1));
    WANT(ZNONODE, zoo_set(s->zh, "/none", "3", 1, -1));
    want_data(s, "/d", "two", 2);
    WANT(ZNONODE, zoo_get(s->zh, "/none", 0, buffer, &n, &stat));
    WANT(ZOK, zoo_set(s->zh, "/d", NULL, -1, -1));
    n = sizeof buffer;
    WANT(ZOK, zoo_get(s->zh, "/d", 0, buffer, &n, &stat));
    CHECK(n == -1, "null data came back with length %d", n);
    WANT(ZOK, zoo_set(s->zh, "/d", "", 0, -1));
    n = sizeof buffer;
    WANT(ZOK, zoo_get(s->zh, "/d", 0, buffer, &n, &stat));
    CHECK(n == 0, "empty data came back with length %d", n);
    WANT(ZNONODE, zoo_exists(s->zh, "/none", 0, &stat));
    WANT(ZOK, zoo_exists(s->zh, "/d", 0, &stat));
    WANT(ZBADVERSION, zoo_delete(s->zh, "/d", 1));
    WANT(ZOK, zoo_delete(s->zh, "/d", stat.version));
    WANT(ZNONODE, zoo_delete(s->zh, "/d", -1));
}

static void children(struct session *s) {
    struct String_vector names;
    struct Stat stat;
    make(s, "/k", "");
    make(s, "/k/one", "");
    make(s, "/k/two", "");
    WANT(ZOK, zoo_get_children(s->zh, "/k", 0, &names));
    CHECK(names.count == 2, "%d children", names.count);
    deallocate_String_vector(&names);
    WANT(ZOK, zoo_get_children2(s->zh, "/k", 0, &names, &stat));
    CHECK(names.count == 2 && stat.numChildren == 2 && stat.cversion == 2, "%d, %d children, cversion %d", names.count,
          stat.numChildren, stat.cversion);
    deallocate_String_vector(&names);
    WANT(ZNOTEMPTY, zoo_delete(s->zh, "/k", -1));
    WANT(ZNONODE, zoo_get_children(s->zh, "/none", 0, &names));
}

static void acls(struct session *s) {
    struct session other;
    struct ACL_vector acl;
    struct Stat stat;
    char buffer[16];
    int n = sizeof buffer;
    dial(&other, direct);
    WANT(ZINVALIDACL, zoo_create(s->zh, "/mine", "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
    WANT(ZOK, zoo_add_auth(s->zh, "digest", "ann:secret", 10, NULL, NULL));
    WANT(ZOK, zoo_create(s->zh, "/mine", "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
    WANT(ZNOAUTH, zoo_get(other.zh, "/mine", 0, buffer, &n, &stat));
    WANT(ZNOAUTH, zoo_set(other.zh, "/mine", "y", 1, -1));
    WANT(ZOK, zoo_get_acl(s->zh, "/mine", &acl, &stat));
    CHECK(acl.count == 1 && acl.data[0].perms == ZOO_PERM_ALL && strcmp(acl.data[0].id.scheme, "digest") == 0 &&
              strncmp(acl.data[0].id.id, "ann:", 4) == 0,
          "%d entries, the first is %s:%s", acl.count, acl.data[0].id.scheme, acl.data[0].id.id);
    deallocate_ACL_vector(&acl);
    WANT(ZBADVERSION, zoo_set_acl(s->zh, "/mine", 5, &ZOO_READ_ACL_UNSAFE));
    WANT(ZOK, zoo_set_acl(s->zh, "/mine", 0, &ZOO_READ_ACL_UNSAFE));
    want_data(&other, "/mine", "x", 0);
    WANT(ZNOAUTH, zoo_set(s->zh, "/mine", "y", 1, -1));
    hang_up(&other);
}

static void synced(int rc, const char *path, const void *context) {
    struct session *s = (struct session *)context;
    on_event(s->zh, rc == ZOK ? ZOO_CHANGED_EVENT : -1, 0, path ? path : "", s);
}

static void syncs(struct session *s) {
    WANT(ZOK, zoo_async(s->zh, "/a", synced, s));
    next_event(s, ZOO_CHANGED_EVENT, "/a");
}

/* The configuration is outside the chroot, which the library does not handle. */
static void configuration(void) {
    struct session s;
    char buffer[256];
    int n = sizeof buffer;
    struct Stat stat;
    dial_as(&s, direct, "", NULL);
    await_state(&s, ZOO_CONNECTED_STATE, "connected");
    WANT(ZOK, zoo_getconfig(s.zh, 0, buffer, &n, &stat));
    CHECK(n <= 0, "a standalone server shows the configuration %.*s", n, buffer);
    n = sizeof buffer;
    WANT(ZRECONFIGDISABLED, zoo_reconfig(s.zh, "server.2=127.0.0.1:1:2;3", NULL, NULL, -1, buffer, &n, &stat));
    hang_up(&s);
}

int main(int argc, char **argv) {
    struct session s;
    start(argc, argv);
    dial(&s, direct);
    creates(&s);
    data(&s);
    children(&s);
    acls(&s);
    syncs(&s);
    configuration();
    hang_up(&s);
    return 0;
}
