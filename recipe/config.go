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
	Token   zk.Zxid // token of the leader; pass it on with each request that results from this configuration
	Version int32   // version of the znode, 0 for the first configuration
	Data    []byte
}

// ConfigOptions are the settings of PublishConfig and WatchConfig. A nil pointer means all defaults.
type ConfigOptions struct {
	ACL zk.ACLs // given to the znode that PublishConfig creates; by default everybody may do everything

	// Logger and Observer receive reports as described at ElectionOptions. If both are nil,
	// PublishConfig uses those of the leader's election.
	Logger   *slog.Logger
	Observer func(Observation)
}

// ErrConfigNewer says that a later leader has already published a configuration.
var ErrConfigNewer = value.ErrNewer

// PublishConfig publishes a leader's configuration at path. It writes only while the
// handle's bid exists, which the same transaction checks. It creates the znode if it is
// missing, but not the parent. If the term is over it returns ErrNotLeader; if the server
// answers that the bid is gone, the term has ended when PublishConfig returns. After a
// zk.UnknownOutcomeError the caller should publish the same data again.
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
		return h.bidMissing(ctx, m.Current)
	case err == inner.Err() && err != nil && ctx.Err() == nil: // the outcome is known: nothing was written
		return b.isOver(h.Lost())
	}
	return err
}

// WatchConfig yields the configuration at path as soon as there is one, and then each later
// configuration until the context ends. It may merge changes in quick succession into one. It
// leaves out a configuration of a leader older than one already yielded. A change costs one
// event and one read. The second value is the error that ends the iteration: the context's,
// zk.ErrClosed, or the error of a server that refused a request.
func WatchConfig(ctx context.Context, c *zk.Client, path string, o *ConfigOptions) iter.Seq2[Config, error] {
	opt := optionsOr(o)
	b := newAgent(c, "config", path, nil, opt.Logger, opt.Observer)
	return func(yield func(Config, error) bool) {
		if err := b.validate(); err != nil {
			yield(Config{}, err)
			return
		}
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
