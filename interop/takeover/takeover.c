/* Clients of Apache's C library that hold a lock in turn while servers are replaced.
 *
 * Run as `takeover HOSTS`. The lock is ZooKeeper's recipe: ephemeral sequential znodes, each of which waits for
 * the end of the one before it. Each holder increments a counter. When standard input ends, the clients stop, and
 * the program prints what they counted as JSON; see program in takeover_programs_test.go. */
#include "../c/check.h"
#include <unistd.h>

#define CLIENTS 3
#define SESSION_MS 50000
#define PAUSE_US 10000 /* between two turns of a client */
#define KINDS 16 /* different errors that are counted */
#define SEQUENCE 10 /* digits at the end of a sequential znode */
#define LOCK "/c/lock"
#define COUNTER "/c/counter"

struct client {
    zhandle_t *zh;
    int64_t session;
    char prefix[32];           /* of its znodes, which holds the id of its session */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int connected, gone;       /* guarded by lock: the session is connected; the znode that it waits for has changed */
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int increments, unsure, overlaps, holders, stop; /* guarded by guard */
static struct { int code, n; } errors[KINDS];           /* guarded by guard */

static void count_error(int code) {
    pthread_mutex_lock(&guard);
    int i = 0;
    while (errors[i].n > 0 && errors[i].code != code)
        CHECK(++i < KINDS, "more than %d kinds of errors", KINDS);
    errors[i].code = code, errors[i].n++;
    pthread_mutex_unlock(&guard);
}

static void add(int *counter, int n) {
    pthread_mutex_lock(&guard);
    *counter += n;
    pthread_mutex_unlock(&guard);
}

static void session_event(zhandle_t *zh, int type, int state, const char *path, void *context) {
    struct client *c = context;
    pthread_mutex_lock(&c->lock);
    c->connected = state == ZOO_CONNECTED_STATE;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    (void)zh, (void)type, (void)path;
}

/* node_event tells a client that the znode before its own may be gone. Session events go to every watch, too. */
static void node_event(zhandle_t *zh, int type, int state, const char *path, void *context) {
    struct client *c = context;
    if (type == ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&c->lock);
    c->gone = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    (void)zh, (void)state, (void)path;
}

static void await(struct client *c, const int *flag, const char *what) {
    struct timespec until = {.tv_sec = time(NULL) + WAIT};
    pthread_mutex_lock(&c->lock);
    while (!*flag)
        CHECK(pthread_cond_timedwait(&c->changed, &c->lock, &until) == 0, "not within %d s: %s", WAIT, what);
    pthread_mutex_unlock(&c->lock);
}

/* lost_connection counts an error and reports whether the request may be repeated: the connection was lost. */
static int lost_connection(struct client *c, int code) {
    if (code == ZOK || code == ZNONODE)
        return 0;
    count_error(code);
    CHECK(code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT, "%s", zerror(code));
    await(c, &c->connected, "connection");
    return 1;
}

static int order(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return strcmp(x + strlen(x) - SEQUENCE, y + strlen(y) - SEQUENCE);
}

/* bids returns the znodes of all clients in their order, and where this client's own is; -1: it has none. */
static int bids(struct client *c, struct String_vector *all) {
    while (lost_connection(c, zoo_get_children(c->zh, LOCK, 0, all)))
        ;
    qsort(all->data, all->count, sizeof *all->data, order);
    for (int i = 0; i < all->count; i++)
        if (strncmp(all->data[i], c->prefix, strlen(c->prefix)) == 0)
            return i;
    return -1;
}

/* bid creates this client's znode. If the connection is lost, the znode may exist. */
static void bid(struct client *c) {
    char path[PATH];
    struct String_vector all;
    snprintf(path, sizeof path, "%s/%s", LOCK, c->prefix);
    while (lost_connection(c, zoo_create(c->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, NULL, 0))) {
        int mine = bids(c, &all);
        deallocate_String_vector(&all);
        if (mine >= 0)
            return;
    }
}

/* acquire waits until the client's znode is the first one, whose path it returns. */
static void acquire(struct client *c, char *path) {
    struct String_vector all;
    struct Stat stat;
    bid(c);
    for (;;) {
        int mine = bids(c, &all), code;
        CHECK(mine >= 0, "the znode of %s is gone", c->prefix);
        snprintf(path, PATH, "%s/%s", LOCK, all.data[mine ? mine - 1 : 0]);
        deallocate_String_vector(&all);
        if (mine == 0)
            return;
        c->gone = 0; /* no watch is registered now */
        while (lost_connection(c, code = zoo_wexists(c->zh, path, node_event, c, &stat)))
            ;
        if (code == ZOK)
            await(c, &c->gone, "the lock");
    }
}

/* increment increments the counter, which only the holder of the lock may do. */
static void increment(struct client *c) {
    char data[16] = "";
    int n = sizeof data - 1;
    struct Stat stat;
    int code = zoo_get(c->zh, COUNTER, 0, data, &n, &stat);
    if (lost_connection(c, code))
        return;
    data[n > 0 ? n : 0] = 0;
    snprintf(data, sizeof data, "%d", atoi(data) + 1);
    code = zoo_set(c->zh, COUNTER, data, strlen(data), stat.version);
    add(code == ZOK ? &increments : &unsure, 1);
    lost_connection(c, code);
}

static void *work(void *context) {
    struct client *c = context;
    char path[PATH];
    for (int done = 0; !done;) {
        acquire(c, path);
        pthread_mutex_lock(&guard);
        overlaps += holders++;
        done = stop;
        pthread_mutex_unlock(&guard);
        increment(c);
        add(&holders, -1);
        while (lost_connection(c, zoo_delete(c->zh, path, -1)))
            ;
        usleep(PAUSE_US);
    }
    return NULL;
}

static void open_session(struct client *c, const char *hosts) {
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->zh = zookeeper_init(hosts, session_event, SESSION_MS, NULL, c, 0);
    CHECK(c->zh != NULL, "zookeeper_init of %s", hosts);
    await(c, &c->connected, "connection");
    c->session = zoo_client_id(c->zh)->client_id;
    snprintf(c->prefix, sizeof c->prefix, "%016llx-", (long long)c->session);
}

static void report(struct client *clients) {
    int lost = 0;
    for (int i = 0; i < CLIENTS; i++)
        lost += zoo_client_id(clients[i].zh)->client_id != clients[i].session;
    printf("{\"sessions\": %d, \"lost\": %d, \"increments\": %d, \"unsure\": %d, \"overlaps\": %d, \"errors\": {", CLIENTS, lost,
           increments, unsure, overlaps);
    for (int i = 0; i < KINDS && errors[i].n > 0; i++)
        printf("%s\"%s\": %d", i ? ", " : "", zerror(errors[i].code), errors[i].n);
    printf("}}\n");
}

int main(int argc, char **argv) {
    static struct client clients[CLIENTS];
    char byte;
    CHECK(argc == 2, "usage: %s HOSTS", argv[0]);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    for (int i = 0; i < CLIENTS; i++)
        open_session(&clients[i], argv[1]);
    WANT(ZOK, zoo_create(clients[0].zh, "/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    WANT(ZOK, zoo_create(clients[0].zh, LOCK, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    WANT(ZOK, zoo_create(clients[0].zh, COUNTER, "0", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    for (int i = 0; i < CLIENTS; i++)
        CHECK(pthread_create(&clients[i].thread, NULL, work, &clients[i]) == 0, "no thread");
    ask("ready");
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    add(&stop, 1);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    report(clients);
    for (int i = 0; i < CLIENTS; i++)
        WANT(ZOK, zookeeper_close(clients[i].zh));
    return 0;
}
