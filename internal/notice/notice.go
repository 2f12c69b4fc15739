package notice

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Limits and intervals of a Log.
const (
	hostsMax    = 8   // hosts per kind that are logged one by one
	kindsMax    = 128 // kinds that are counted one by one
	periodFirst = time.Minute
	periodMax   = time.Hour
)

// rest is the kind that counts all messages beyond kindsMax.
const rest = "other notices"

// Log writes repeated messages. It is safe for concurrent use.
type Log struct {
	log *slog.Logger

	mu     sync.Mutex
	kinds  map[string]*kind
	closed bool
}

// kind is one message since it was first logged. The Log forgets a kind that was not
// repeated for a period. 0 <= len(hosts) <= hostsMax.
type kind struct {
	level  slog.Level
	hosts  map[string]bool // hosts whose messages were logged
	count  int             // repetitions since the last summary
	last   string          // address of the last repetition
	period time.Duration   // until the next summary; it doubles up to periodMax
	timer  *time.Timer
}

// New returns a Log that writes to log.
func New(log *slog.Logger) *Log { return &Log{log: log, kinds: map[string]*kind{}} }

// Say logs a message, or only counts it for a later summary. what is the text of the
// message; it must not contain text that others choose freely. The message gets the
// attribute peer=address unless address is empty. At level debug, every message is logged.
func (l *Log) Say(level slog.Level, what, address string, args ...any) {
	if address != "" {
		args = append([]any{"peer", address}, args...)
	}
	l.log.Log(context.Background(), l.Level(level, what, address), what, args...)
}

// Level counts a message without logging it. It returns the level at which the caller
// should log the message in its own words: level if the message is new, and debug
// otherwise. what and address are as in Say.
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

// hostOf returns the host of an address, without the port, which changes with every connection.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// kind returns the kind of a message and adds it if it is new. The caller holds the lock.
func (l *Log) kind(level slog.Level, what string) *kind {
	if k := l.kinds[what]; k != nil {
		return k
	}
	if len(l.kinds) >= kindsMax && what != rest {
		return l.kind(level, rest)
	}
	k := &kind{level: level, hosts: map[string]bool{}, period: periodFirst}
	if !l.closed {
		k.timer = time.AfterFunc(k.period, func() { l.due(what, k) })
	}
	l.kinds[what] = k
	return k
}

// due writes the summary of a kind, or forgets the kind if it was not repeated.
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
		k.period = min(2*k.period, periodMax)
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

// Close writes the remaining summaries and stops the timers. Later messages are logged
// or counted, but have no summaries.
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
