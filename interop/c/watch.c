/* Watches: each fires once, for its change, and can be removed. */
#include "check.h"

static void fires(struct session *s, struct session *writer) {
    struct Stat stat;
    struct String_vector names;
    char buffer[16];
    int n = sizeof buffer;
    WANT(ZNONODE, zoo_wexists(s->zh, "/w", on_event, s, &stat));
    make(writer, "/w", "");
    next_event(s, ZOO_CREATED_EVENT, "/w");

    WANT(ZOK, zoo_wget(s->zh, "/w", on_event, s, buffer, &n, &stat));
    WANT(ZOK, zoo_set(writer->zh, "/w", "1", 1, -1));
    WANT(ZOK, zoo_set(writer->zh, "/w", "2", 1, -1));
    next_event(s, ZOO_CHANGED_EVENT, "/w");

    WANT(ZOK, zoo_wget_children(s->zh, "/w", on_event, s, &names));
    deallocate_String_vector(&names);
    make(writer, "/w/child", "");
    next_event(s, ZOO_CHILD_EVENT, "/w");

    WANT(ZOK, zoo_wexists(s->zh, "/w/child", on_event, s, &stat));
    WANT(ZOK, zoo_delete(writer->zh, "/w/child", -1));
    next_event(s, ZOO_DELETED_EVENT, "/w/child");
}

/* The writer's own watch fires before its call returns to the watcher thread. */
static void own_write(struct session *s) {
    char buffer[16];
    int n = sizeof buffer;
    struct Stat stat;
    WANT(ZOK, zoo_wget(s->zh, "/w", on_event, s, buffer, &n, &stat));
    WANT(ZOK, zoo_set(s->zh, "/w", "mine", 4, -1));
    next_event(s, ZOO_CHANGED_EVENT, "/w");
}

static void removed(struct session *s, struct session *writer) {
    char buffer[16];
    int n = sizeof buffer;
    struct Stat stat;
    WANT(ZNOWATCHER, zoo_remove_watches(s->zh, "/w", ZWATCHTYPE_DATA, NULL, NULL, 0));
    WANT(ZOK, zoo_wget(s->zh, "/w", on_event, s, buffer, &n, &stat));
    WANT(ZOK, zoo_remove_all_watches(s->zh, "/w", ZWATCHTYPE_DATA, 0));
    WANT(ZOK, zoo_set(writer->zh, "/w", "3", 1, -1));
    WANT(ZOK, zoo_exists(s->zh, "/w", 0, &stat));
    no_event(s);
}

int main(int argc, char **argv) {
    struct session s, writer;
    start(argc, argv);
    dial(&s, direct);
    dial(&writer, direct);
    fires(&s, &writer);
    own_write(&s);
    removed(&s, &writer);
    hang_up(&writer);
    hang_up(&s);
    return 0;
}
