/* What the C programs share: checks, sessions whose state can be waited for, and
 * a record of watch events.
 *
 * Each program is run as `program DIRECT PROXY PREFIX`: two addresses of one
 * server, the second of which can be cut, and a path for this program alone.
 * It exits with 1 and a message when an expectation does not hold. Every wait
 * ends after WAIT seconds. */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

#define WAIT 180        /* timeout of every wait, in seconds */
#define TIMEOUT 10000   /* requested session timeout, in milliseconds */
#define EVENTS 64       /* watch events that one program can cause */
#define PATH 256        /* bytes of a path, with the final zero */

#define CHECK(cond, ...)                                              \
    do {                                                              \
        if (!(cond)) {                                                \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
            fprintf(stderr, __VA_ARGS__);                             \
            fprintf(stderr, "\n");                                    \
            exit(1);                                                  \
        }                                                             \
    } while (0)

/* WANT checks the code that a call of the library returns. */
#define WANT(want, call)                                                     \
    do {                                                                     \
        int got_ = (call);                                                   \
        CHECK(got_ == (want), "%s returned %s, want %s", #call, zerror(got_), \
              zerror(want));                                                 \
    } while (0)

/* A session. The watcher thread of the library changes what the lock guards. */
struct session {
    zhandle_t *zh;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int state;                 /* guarded by lock, as is all below */
    int count;                 /* events so far */
    int seen;                  /* events that next_event has returned */
    int types[EVENTS];
    char paths[EVENTS][PATH];
};

static const char *direct, *proxy, *prefix;

static inline void on_event(zhandle_t *zh, int type, int state, const char *path, void *context) {
    struct session *s = context;
    pthread_mutex_lock(&s->lock);
    if (type == ZOO_SESSION_EVENT) {
        s->state = state;
    } else {
        CHECK(s->count < EVENTS, "more than %d events", EVENTS);
        s->types[s->count] = type;
        snprintf(s->paths[s->count++], PATH, "%s", path);
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    (void)zh;
}

/* wait_changed waits, with the lock held, for the watcher thread to do something. */
static inline void wait_changed(struct session *s, time_t until, const char *what) {
    struct timespec deadline = {.tv_sec = until};
    CHECK(pthread_cond_timedwait(&s->changed, &s->lock, &deadline) == 0, "not within %d s: %s", WAIT, what);
}

static inline void await_state(struct session *s, int state, const char *what) {
    time_t until = time(NULL) + WAIT;
    pthread_mutex_lock(&s->lock);
    while (s->state != state)
        wait_changed(s, until, what);
    pthread_mutex_unlock(&s->lock);
}

/* next_event checks which watch event comes next, after those checked before. */
static inline void next_event(struct session *s, int type, const char *path) {
    time_t until = time(NULL) + WAIT;
    pthread_mutex_lock(&s->lock);
    while (s->count == s->seen)
        wait_changed(s, until, path);
    int i = s->seen++;
    CHECK(s->types[i] == type && strcmp(s->paths[i], path) == 0, "event %d on %s, want %d on %s", s->types[i],
          s->paths[i], type, path);
    pthread_mutex_unlock(&s->lock);
}

static inline void no_event(struct session *s) {
    pthread_mutex_lock(&s->lock);
    CHECK(s->count == s->seen, "unexpected event %d on %s", s->types[s->seen], s->paths[s->seen]);
    pthread_mutex_unlock(&s->lock);
}

/* dial_as opens a session on one of the two addresses. An id of another handle
 * resumes its session. */
static inline void dial_as(struct session *s, const char *host, const char *chroot, const clientid_t *id) {
    char hosts[PATH];
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    snprintf(hosts, sizeof hosts, "%s%s", host, chroot);
    s->zh = zookeeper_init(hosts, on_event, TIMEOUT, id, s, 0);
    CHECK(s->zh != NULL, "zookeeper_init of %s", hosts);
}

/* dial opens a new session below the prefix and waits for it. */
static inline void dial(struct session *s, const char *host) {
    dial_as(s, host, prefix, NULL);
    await_state(s, ZOO_CONNECTED_STATE, "connected");
}

/* hang_up closes the session. */
static inline void hang_up(struct session *s) { WANT(ZOK, zookeeper_close(s->zh)); }

/* ask prints a command for the test: @cut, @down or @up. */
static inline void ask(const char *command) {
    printf("%s\n", command);
    fflush(stdout);
}

/* make creates a persistent node open to all. */
static inline void make(struct session *s, const char *path, const char *data) {
    WANT(ZOK, zoo_create(s->zh, path, data, strlen(data), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
}

/* want_data checks a node's data and version. */
static inline void want_data(struct session *s, const char *path, const char *data, int version) {
    char got[1024];
    int n = sizeof got;
    struct Stat stat;
    WANT(ZOK, zoo_get(s->zh, path, 0, got, &n, &stat));
    CHECK(n == (int)strlen(data) && memcmp(got, data, n) == 0, "%s holds %.*s, want %s", path, n, got, data);
    CHECK(stat.version == version, "%s has version %d, want %d", path, stat.version, version);
}

/* start reads the arguments and makes the prefix. */
static inline void start(int argc, char **argv) {
    CHECK(argc == 4, "usage: %s DIRECT PROXY PREFIX", argv[0]);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    direct = argv[1], proxy = argv[2], prefix = "";
    struct session s;
    dial(&s, direct);
    make(&s, argv[3], "");
    hang_up(&s);
    prefix = argv[3];
}

#endif
