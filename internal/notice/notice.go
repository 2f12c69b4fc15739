package notice

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// What a Log keeps and how often it writes.
const (
	hostsMax = 8   // hosts that a kind logs one by one
	kindsMax = 128 // kinds that are counted one by one
	first    = time.Minute
	longest  = time.Hour
)

// rest is the kind of all messages beyond kindsMax.
const rest = "other notices"

// Log is a log of repeated messages. It is safe for concurrent use.
type Log struct {
	log *slog.Logger

	mu     sync.Mutex
	kinds  map[string]*kind
	closed bool
}

// kind is one message since it was logged first. It is forgotten when it has
// not been repeated for a period. 0 <= len(hosts) <= hostsMax.
type kind struct {
	level  slog.Level
	hosts  map[string]bool // that were logged one by one
	count  int             // of repetitions since the last summary
	last   string          // address of the last one
	period time.Duration   // until the next summary; it doubles up to longest
	timer  *time.Timer
}

// New returns a Log that writes to log.
func New(log *slog.Logger) *Log { return &Log{log: log, kinds: map[string]*kind{}} }

// Say logs a message about an address, as peer= unless it is empty, or only counts it: a summary
// follows, in which what stands for all messages of its kind. What is not made
// of anything that others choose freely. At level debug nothing is left out.
func (l *Log) Say(level slog.Level, what, address string, args ...any) {
	if address != "" {
		args = append([]any{"peer", address}, args...)
	}
	l.log.Log(context.Background(), l.Level(level, what, address), what, args...)
}

// Level counts a message, for a caller that logs it with other words than
// what: at level if it is new, and otherwise at level debug.
func (l *Log) Level(level slog.Level, what, address string) slog.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kind(level, what)
	host := hostOf(address)
	if len(k.hosts) < hostsMax && !k.hosts[host] {
		k.hosts[host] = true
		return level
	}
	k.count++
	k.last = address
	return slog.LevelDebug
}

// hostOf is the host of an address: ports change from one connection to the next.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// kind returns the kind of a message, made now if it is new. The lock is held.
func (l *Log) kind(level slog.Level, what string) *kind {
	if k := l.kinds[what]; k != nil {
		return k
	}
	if len(l.kinds) >= kindsMax && what != rest {
		return l.kind(level, rest)
	}
	k := &kind{level: level, hosts: map[string]bool{}, period: first}
	if !l.closed {
		k.timer = time.AfterFunc(k.period, func() { l.due(what, k) })
	}
	l.kinds[what] = k
	return k
}

// due writes the summary of a kind, or forgets it if there is nothing to tell.
func (l *Log) due(what string, k *kind) {
	l.mu.Lock()
	count, last, period := k.count, k.last, k.period
	switch {
	case l.closed:
		count = 0
	case count == 0:
		delete(l.kinds, what)
	default:
		k.count = 0
		k.period = min(2*k.period, longest)
		k.timer.Reset(k.period)
	}
	l.mu.Unlock()
	l.summary(k.level, what, count, last, period)
}

func (l *Log) summary(level slog.Level, what string, count int, last string, period time.Duration) {
	if count > 0 {
		l.log.Log(context.Background(), level, "repeated: "+what, "times", count, "within", period, "last", last)
	}
}

// Close writes what was counted and stops the timers. Later messages are
// logged or counted, without summaries.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	kinds := l.kinds
	l.kinds = map[string]*kind{}
	l.mu.Unlock()
	for what, k := range kinds {
		if k.timer != nil {
			k.timer.Stop()
		}
		l.summary(k.level, what, k.count, k.last, k.period)
	}
}
