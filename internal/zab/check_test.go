package zab

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/fifo"
	"bellwether/internal/record"
	"bellwether/wire"
)

// The tests call check after each step of a machine. The doc comments of the types state the invariants,
// and check reports the first one that does not hold.

// must returns a description of an invariant that does not hold.
func must(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func (l *Leader) check() error {
	if l.phase == over {
		return l.log.check()
	}
	errs := []error{
		l.log.check(), l.commitment.check(),
		must(l.phase != serving || l.proposed == max(l.log.last, l.epochZero()), "proposed %v, the log ends at %v", l.proposed, l.log.last),
		must(l.own.durable <= l.log.last, "durable here up to %v, the log ends at %v", l.own.durable, l.log.last),
		must(l.phase < synchronising || l.own.promised, "epoch agreed on without this server"),
		must(l.phase < serving || l.own.adopted, "serves before its own history is durable"),
		must(l.pings.confirmed.n <= l.pings.last.n && l.pings.full <= l.pings.last.n, "pings: %+v", l.pings),
		must(len(l.order) == len(l.links), "%d links in order, %d by id", len(l.order), len(l.links)),
		ascending("waiting", &l.pings.waiting, func(w waiting) int64 { return w.round }),
	}
	named := 0
	for _, k := range l.order {
		if k.state != linkNew {
			named++
		}
		errs = append(errs, l.checkLink(k))
	}
	errs = append(errs, must(named == len(l.servers), "%d links with a name, %d servers", named, len(l.servers)))
	return errors.Join(errs...)
}

func (c *commitment) check() error {
	return errors.Join(
		must(c.lastSeen == nil || c.lastSeen.Version() > c.committed.Version(), "configuration %v is proposed, %v committed", c.lastSeen, c.committed),
		must(c.reconfig == 0 || c.lastSeen != nil, "reconfiguration %v proposes nothing", c.reconfig),
		must(c.servers[c.self] == nil, "this server is its own learner"),
	)
}

func (l *Leader) checkLink(k *link) error {
	oldest := pingRound{n: l.pings.last.n + 1}
	if k.unanswered.Len() > 0 {
		oldest = *k.unanswered.First()
	}
	err := errors.Join(
		must(l.links[k.id] == k, "the link is not found by its id"),
		must((k.state == linkNew) == (l.servers[k.server] != k), "the link is not found by its server"),
		must(!k.promised || k.state >= linkPromised, "promised in state %d", k.state),
		must(k.adopted == (k.state >= linkSynced), "adopted %v in state %d", k.adopted, k.state),
		must(k.state < linkServing || l.phase == serving, "serves before the leader"),
		must(k.adopted || k.durable == 0, "durable up to %v in state %d", k.durable, k.state),
		must(!k.adopted || k.upTo <= k.durable, "synchronised up to %v, durable up to %v", k.upTo, k.durable),
		must(k.durable <= max(l.proposed, l.epochZero()), "durable up to %v, proposed up to %v", k.durable, l.proposed),
		must(k.watched == 0 || k.durable < k.watched && k.watched <= l.proposed && !k.observer && k.state >= linkSyncing,
			"waits for the ACK of %v, durable up to %v", k.watched, k.durable),
		must(k.answered.n < oldest.n, "answered round %d, waits for the answer to %d", k.answered.n, oldest.n),
		must(k.unanswered.Len() <= 256, "%d unanswered pings", k.unanswered.Len()),
		must(k.told <= k.confirmed && k.confirmed <= k.reports && k.asked <= k.reports, "%d of %d reports confirmed, %d told, asked with report %d", k.confirmed, k.reports, k.told, k.asked),
		must(k.syncs.Len() == 0 || (!k.native || k.relays) && k.state == linkServing, "holds syncs in state %d", k.state),
		ascending("unanswered", &k.unanswered, func(b pingRound) int64 { return b.n }),
		ascending("unconfirmed", &k.unconfirmed, func(a reports) int64 { return a.n }),
		ascending("unconfirmed zxids", &k.unconfirmed, func(a reports) wire.Zxid { return a.zxid }),
	)
	if err != nil {
		return fmt.Errorf("link of %s: %w", k.name(), err)
	}
	return nil
}

func (r *Learner) check() error {
	if r.step == ended {
		return r.log.check()
	}
	t := &r.touches
	return errors.Join(
		r.log.check(),
		must(r.step < adopting || r.opened <= r.decided && r.decided <= r.tail, "opened %v, decided %v, tail %v", r.opened, r.decided, r.tail),
		must(r.step != following || r.tail == r.log.last && r.decided == r.log.applied, "tail %v, decided %v, log %v applied %v", r.tail, r.decided, r.log.last, r.log.applied),
		must(len(r.pending) == 0 || r.step >= adopting && r.step < following && r.pending[len(r.pending)-1].Zxid == r.tail, "%d pending in step %d, tail %v", len(r.pending), r.step, r.tail),
		must(r.unacked.Len() == 0 || r.step == following && *r.unacked.Last() <= r.tail, "%d unacknowledged in step %d", r.unacked.Len(), r.step),
		must(r.target <= r.log.last, "waits for %v, the log ends at %v", r.target, r.log.last),
		must(r.early >= 0, "%d pings answered ahead", r.early),
		must(len(t.place) == len(t.sessions), "%d sessions, %d places", len(t.sessions), len(t.place)),
		must(t.confirmed <= t.token, "confirmed %d of %d", t.confirmed, t.token),
		must(t.told <= t.reports && t.asked <= t.reports && t.wanted <= t.reports+1, "touches: %+v", *t),
		must(slices.IsSortedFunc(r.pending, func(a, b *record.Txn) int { return cmp.Compare(a.Zxid, b.Zxid) }), "pending out of order"),
		ascending("unacknowledged", &r.unacked, func(z wire.Zxid) wire.Zxid { return z }),
		ascending("sent touches", &t.sent, func(s sentTouches) int64 { return s.report }),
		r.master.check(),
	)
}

func (m *observerMaster) check() error {
	if m == nil {
		return nil
	}
	errs := []error{must(len(m.order) == len(m.links), "%d observers in order, %d by id", len(m.order), len(m.links))}
	named := 0
	for _, k := range m.order {
		if k.state != linkNew {
			named++
		}
		errs = append(errs,
			must(m.links[k.id] == k, "the observer is not found by its link"),
			must((k.state == linkNew) == (m.servers[k.server] != k), "the observer is not found by its server"),
			must(k.state < linkSyncing || k.upTo == m.r.decided, "%s has everything up to %v, committed is %v", k.name(), k.upTo, m.r.decided),
			must(k.told <= k.confirmed && k.confirmed <= k.reports && k.asked <= k.reports, "%d of %d reports confirmed, %d told, asked with report %d", k.confirmed, k.reports, k.told, k.asked))
	}
	return errors.Join(append(errs, must(named == len(m.servers), "%d observers with a name, %d servers", named, len(m.servers)))...)
}

func (g *Log) check() error {
	last := g.before
	for _, t := range g.entries {
		if !follows(last, t.Zxid) {
			return fmt.Errorf("log: %v follows %v", t.Zxid, last)
		}
		last = t.Zxid
	}
	return errors.Join(
		must(last == g.last, "log: ends at %v, its last entry is %v", g.last, last),
		must(g.applied <= g.last, "log: applied up to %v, ends at %v", g.applied, g.last),
	)
}

// ascending reports whether the keys of a queue never decrease.
func ascending[E any, K ~int64](name string, queue *fifo.Queue[E], key func(E) K) error {
	for i := 1; i < queue.Len(); i++ {
		if a, b := key(*queue.At(i - 1)), key(*queue.At(i)); a > b {
			return fmt.Errorf("%s: %d before %d", name, a, b)
		}
	}
	return nil
}
