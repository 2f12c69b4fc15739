/* multi: all operations or none, with a result for each. */
#include "check.h"

static void succeeds(struct session *s) {
    char first[PATH], second[PATH];
    struct Stat stat;
    zoo_op_t ops[5];
    zoo_op_result_t results[5];
    zoo_create_op_init(&ops[0], "/m", "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, first, sizeof first);
    zoo_create_op_init(&ops[1], "/m/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, second,
                       sizeof second);
    zoo_set_op_init(&ops[2], "/m", "2", 1, 0, &stat);
    zoo_check_op_init(&ops[3], "/m", 1);
    zoo_delete_op_init(&ops[4], "/m/s-0000000000", 0);
    WANT(ZOK, zoo_multi(s->zh, 5, ops, results));
    for (int i = 0; i < 5; i++)
        CHECK(results[i].err == ZOK, "result %d is %s", i, zerror(results[i].err));
    CHECK(strcmp(first, "/m") == 0 && strcmp(second, "/m/s-0000000000") == 0, "made %s and %s", first, second);
    CHECK(stat.version == 1, "version %d after the set", stat.version);
    want_data(s, "/m", "2", 1);
}

static void fails(struct session *s) {
    struct Stat stat;
    zoo_op_t ops[4];
    zoo_op_result_t results[4];
    zoo_set_op_init(&ops[0], "/m", "3", 1, -1, &stat);
    zoo_create_op_init(&ops[1], "/m/never", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_check_op_init(&ops[2], "/m", 99);
    zoo_delete_op_init(&ops[3], "/m", -1);
    WANT(ZBADVERSION, zoo_multi(s->zh, 4, ops, results));
    int want[] = {ZOK, ZOK, ZBADVERSION, ZRUNTIMEINCONSISTENCY};
    for (int i = 0; i < 4; i++)
        CHECK(results[i].err == want[i], "result %d is %s, want %s", i, zerror(results[i].err), zerror(want[i]));
    want_data(s, "/m", "2", 1);
    WANT(ZNONODE, zoo_exists(s->zh, "/m/never", 0, &stat));
}

/* A later operation of one multi sees what an earlier one did. */
static void sees_itself(struct session *s) {
    zoo_op_t ops[4];
    zoo_op_result_t results[4];
    zoo_delete_op_init(&ops[0], "/m", 1);
    zoo_create_op_init(&ops[1], "/m", "new", 3, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_create_op_init(&ops[2], "/m/child", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_check_op_init(&ops[3], "/m", 0);
    WANT(ZOK, zoo_multi(s->zh, 4, ops, results));
    want_data(s, "/m", "new", 0);
    zoo_delete_op_init(&ops[0], "/m", -1);
    WANT(ZNOTEMPTY, zoo_multi(s->zh, 1, ops, results));
}

int main(int argc, char **argv) {
    struct session s;
    start(argc, argv);
    dial(&s, direct);
    succeeds(&s);
    fails(&s);
    sees_itself(&s);
    hang_up(&s);
    return 0;
}
