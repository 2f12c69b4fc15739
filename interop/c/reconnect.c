/* Lost connections: the session, its ephemerals and its watches survive; a session
 * without a connection expires, and another handle can resume a session. */
#include "check.h"

static void cut(struct session *s, struct session *other) {
    struct Stat stat;
    char buffer[16];
    int n = sizeof buffer;
    int64_t id = zoo_client_id(s->zh)->client_id;
    WANT(ZOK, zoo_create(s->zh, "/e", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
    make(s, "/data", "1");
    WANT(ZOK, zoo_wget(s->zh, "/data", on_event, s, buffer, &n, &stat));
    WANT(ZNONODE, zoo_wexists(s->zh, "/later", on_event, s, &stat));
    ask("@down");
    await_state(s, ZOO_CONNECTING_STATE, "disconnected");
    WANT(ZOK, zoo_set(other->zh, "/data", "2", 1, -1));
    ask("@up");
    await_state(s, ZOO_CONNECTED_STATE, "connected again");
    CHECK(zoo_client_id(s->zh)->client_id == id, "session %llx, was %llx", (long long)zoo_client_id(s->zh)->client_id,
          (long long)id);
    next_event(s, ZOO_CHANGED_EVENT, "/data");
    make(other, "/later", "");
    next_event(s, ZOO_CREATED_EVENT, "/later");
    WANT(ZOK, zoo_exists(other->zh, "/e", 0, &stat));
}

/* A second handle resumes a session by its id and password. */
static void taken_over(struct session *other) {
    struct session first, second;
    struct Stat stat;
    clientid_t id;
    dial(&first, proxy);
    WANT(ZOK, zoo_create(first.zh, "/moves", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
    id = *zoo_client_id(first.zh);
    ask("@down");
    await_state(&first, ZOO_CONNECTING_STATE, "disconnected");
    dial_as(&second, direct, prefix, &id);
    await_state(&second, ZOO_CONNECTED_STATE, "session taken over");
    CHECK(zoo_client_id(second.zh)->client_id == id.client_id, "another session");
    hang_up(&second);
    WANT(ZNONODE, zoo_exists(other->zh, "/moves", 0, &stat));
    ask("@up");
    await_state(&first, ZOO_EXPIRED_SESSION_STATE, "end of a session that was closed elsewhere");
    zookeeper_close(first.zh); /* the session has ended: no reply to the close */
}

static void wrong_password(void) {
    struct session s, thief;
    dial(&s, direct);
    clientid_t id = *zoo_client_id(s.zh);
    id.passwd[0] ^= 1;
    dial_as(&thief, direct, prefix, &id);
    await_state(&thief, ZOO_EXPIRED_SESSION_STATE, "refusal of a wrong password");
    zookeeper_close(thief.zh);
    await_state(&s, ZOO_CONNECTED_STATE, "the session whose id was used is connected");
    hang_up(&s);
}

static void expires(struct session *s, struct session *other) {
    struct Stat stat;
    WANT(ZOK, zoo_wexists(other->zh, "/e", on_event, other, &stat));
    ask("@down");
    next_event(other, ZOO_DELETED_EVENT, "/e");
    ask("@up");
    await_state(s, ZOO_EXPIRED_SESSION_STATE, "expired");
    CHECK(is_unrecoverable(s->zh) == ZINVALIDSTATE, "an expired handle is usable");
}

int main(int argc, char **argv) {
    struct session s, other;
    start(argc, argv);
    dial(&s, proxy);
    dial(&other, direct);
    cut(&s, &other);
    wrong_password();
    taken_over(&other);
    await_state(&s, ZOO_CONNECTED_STATE, "connected after others went down");
    expires(&s, &other);
    zookeeper_close(s.zh);
    hang_up(&other);
    return 0;
}
