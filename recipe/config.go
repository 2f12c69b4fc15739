package recipe

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"bellwether/internal/claim/value"
	"bellwether/zk"
)

// Config is a configuration that a leader has published.
type Config struct {
	Token   zk.Zxid // of the leader: pass it on with what is done by the configuration
	Version int32   // of the znode, 0 for the first one
	Data    []byte
}

// ConfigOptions are the settings of PublishConfig and WatchConfig; nil is all defaults.
type ConfigOptions struct {
	ACL zk.ACLs // of the znode that PublishConfig makes, open to everybody by default

	// Logger and Observer are those of ElectionOptions. PublishConfig uses those of the
	// leader's election where both are nil.
	Logger   *slog.Logger
	Observer func(Observation)
}

// ErrConfigNewer says that a later leader has published a configuration already.
var ErrConfigNewer = value.ErrNewer

// PublishConfig publishes a leader's configuration at path. It writes only while the
// handle's bid exists, which the same transaction checks. It creates the znode if it is
// missing, but not the parent. If the term is over it returns ErrNotLeader. After a
// zk.UnknownOutcomeError, publish the same data again.
func PublishConfig(ctx context.Context, h *Handle, path string, data []byte, o *ConfigOptions) error {
	if h.t.cfg.Naming == PlainNames {
		return ErrNoGuard
	}
	if lost := h.Lost(); lost != nil {
		return h.t.b.isOver(lost)
	}
	b := h.t.b.agent
	if b.acl = nil; o != nil {
		b.acl = o.ACL
		if r := newReporter(o.Logger, o.Observer); r != nil {
			b.report = r
		}
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	m := value.NewAnnounce(value.AnnounceConfig{Path: path, Bid: h.bid, Session: h.t.session, Token: h.token, Data: data})
	err := b.perform(inner, "publish", path, m)
	switch {
	case errors.Is(err, value.ErrBidGone):
		return b.isOver(b.lost(BidGone, nil))
	case err == inner.Err() && err != nil && ctx.Err() == nil: // nothing is in doubt
		return b.isOver(h.Lost())
	}
	return err
}

// WatchConfig yields the configuration at path, once there is one, and each later one,
// until the context ends. Configurations in quick succession may be seen as one. A
// configuration of an older leader than one seen before is left out. A change costs one
// event and one read. The second value is the error that ends the iteration: the
// context's, zk.ErrClosed, or what the server refuses.
func WatchConfig(ctx context.Context, c *zk.Client, path string, o *ConfigOptions) iter.Seq2[Config, error] {
	var opt ConfigOptions
	if o != nil {
		opt = *o
	}
	b := newAgent(c, "config", path, nil, opt.Logger, opt.Observer)
	return func(yield func(Config, error) bool) {
		start := time.Now()
		m := value.NewAnnouncements(path)
		err := b.follow(ctx, "watch", path, m, func() bool {
			now, ok := m.Next()
			if ok {
				b.observed("news", path, time.Time{}, nil)
			}
			return !ok || yield(Config(now), nil)
		})
		b.observed("watch", path, start, err)
		if err != nil {
			yield(Config{}, err)
		}
	}
}
