package lines

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// confirms is how a kind of server confirms pings.
type confirms struct {
	name   string
	delay  time.Duration // D, which the client knows or assumes
	round  time.Duration // the leader hears of pings, and confirms them, in rounds; 0: each ping is answered at once
	behind time.Duration // how long after the round that carries a ping its answer follows
}

// answer returns when a ping is answered. phase is when the rounds began.
func (s confirms) answer(sent, phase time.Duration) time.Duration {
	if s.round == 0 {
		return sent
	}
	rounds := (sent - phase + s.round - 1) / s.round
	return phase + rounds*s.round + s.behind
}

// servers returns all kinds of servers, with ticks from 100 ms to 5 s.
func servers() (all []confirms) {
	for _, ms := range []int{100, 200, 300, 1000, 2000, 5000} {
		tick := time.Duration(ms) * time.Millisecond
		all = append(all, confirms{name: fmt.Sprintf("standalone, tick %v", tick), delay: tick})
		for _, syncLimit := range []int{1, 2, 5, 10} { // as zab.LeaderOptions sets the lease and the heartbeat
			beat := min(100*time.Millisecond, tick/2)
			all = append(all, confirms{fmt.Sprintf("ensemble, tick %v, syncLimit %d", tick, syncLimit),
				min(500*time.Millisecond, time.Duration(syncLimit)*tick/2), beat, beat})
		}
		all = append(all, confirms{name: fmt.Sprintf("ZooKeeper, tick %v", tick), delay: 7 * tick},
			confirms{fmt.Sprintf("follower of a ZooKeeper leader, tick %v", tick), 7 * tick, tick / 2, 0})
	}
	return all
}

// keeper steps an Election whose bid is the only one, with the answers to its pings.
type keeper struct {
	e     *Election
	lease claim.Lease
	now   time.Duration
	sent  []time.Duration // when each unanswered ping was sent
	due   time.Duration   // when the next ping is due
}

func moment(at time.Duration) claim.Moment { return claim.Moment{Mono: at, Wall: at} }

// step steps an event, and answers each request at once.
func (k *keeper) step(ev claim.Event) {
	k.e.Step(moment(k.now), ev)
	for r := k.e.Ready().Request; r != nil; r = k.e.Ready().Request {
		rep := claim.Reply{N: r.N}
		for _, op := range r.Ops {
			rep.Results = append(rep.Results, k.result(op))
		}
		k.e.Step(moment(k.now), rep)
	}
}

func (k *keeper) result(op claim.Op) claim.Result {
	bid := claim.BidPrefix(claim.Own, claim.Nonce{}) + "0000000003"
	switch op.Kind {
	case claim.OpCreate:
		return claim.Result{Path: "/p/" + bid}
	case claim.OpList:
		return claim.Result{Names: []string{bid}}
	}
	return claim.Result{Stat: wire.Stat{Czxid: 9, EphemeralOwner: 7}}
}

// newKeeper returns a bid that was given a lease which has lapsed already.
func newKeeper(cfg Config, timeout time.Duration, s confirms) *keeper {
	cfg.Parent = "/p"
	k := &keeper{e: NewElection(cfg), now: time.Hour, due: time.Hour, lease: claim.Lease{Timeout: timeout, Delay: s.delay}}
	k.step(claim.Attached{Session: 7, Lease: k.lease})
	return k
}

// run steps a while of pings and their answers, until the bid is over.
func (k *keeper) run(s confirms, phase, while time.Duration) {
	for end := k.now + while; k.now < end && !k.e.Over(); k.now += max(k.lease.Timeout/300, time.Millisecond) {
		if k.now >= k.due {
			k.sent = append(k.sent, k.now)
			k.due = k.now + k.lease.Pace()
		}
		answered := 0
		for answered < len(k.sent) && s.answer(k.sent[answered], phase) <= k.now {
			answered++
		}
		if answered > 0 {
			k.lease.Sent = moment(k.sent[answered-1])
			k.sent = slices.Delete(k.sent, 0, answered)
			k.step(claim.Confirmed{Lease: k.lease})
		}
		k.step(claim.Tick{})
	}
}

// TestProvenTermLasts checks for all kinds of servers and for timeouts from 200 ms to 40 s that a bid whose lease is
// proven leads, and continues to lead, as long as the server answers its pings in the time that it needs.
func TestProvenTermLasts(t *testing.T) {
	proven := 0
	for _, s := range servers() {
		for timeout := 200 * time.Millisecond; timeout <= 40*time.Second; timeout += max(10*time.Millisecond, timeout/30) {
			if (claim.Lease{Timeout: timeout, Delay: s.delay}).Proof() != nil {
				continue
			}
			proven++
			for _, phase := range []time.Duration{0, s.round * 2 / 3} {
				k := newKeeper(Config{}, timeout, s)
				k.run(s, phase, 2*timeout)
				if st := k.e.State(); st.Phase != Leading {
					t.Errorf("%s, timeout %v: the bid is %v (%v)", s.name, timeout, st.Phase, st.Reason)
				}
			}
		}
	}
	if proven < 1000 {
		t.Errorf("only %d of the leases are proven", proven)
	}
}

// TestFirstBidWithoutATermLeavesItsLine checks that a bid that no answer to a ping lets lead, although it is first and
// its session lives, is removed after a session timeout, so that the next bid has its turn.
func TestFirstBidWithoutATermLeavesItsLine(t *testing.T) {
	slow := confirms{"slow", 500 * time.Millisecond, time.Second, 500 * time.Millisecond}
	for _, c := range []struct {
		name    string
		timeout time.Duration
		margin  time.Duration
		reason  claim.Reason
	}{
		{"answers come too late for a proof", 900 * time.Millisecond, 0, claim.LeaseLapsed},
		{"answers come too late without a proof", 600 * time.Millisecond, 0, claim.LeaseLapsed},
		{"the margin is longer than the lease", 10 * time.Second, 9500 * time.Millisecond, claim.Refused},
		{"the margin is longer than what answers leave", 10 * time.Second, 9 * time.Second, claim.LeaseLapsed},
	} {
		k := newKeeper(Config{Margin: c.margin}, c.timeout, slow)
		began := k.now
		k.run(slow, 0, 3*c.timeout)
		if st := k.e.State(); st.Phase != Done || st.Led || st.Reason != c.reason || (st.Err != nil) != (c.reason == claim.Refused) {
			t.Errorf("%s: %+v", c.name, st)
		}
		if took := k.now - began; took < c.timeout {
			t.Errorf("%s: gave up after %v", c.name, took)
		}
	}
}

// TestTurnEndsWithTheConnection checks that the time without a connection does not count against a bid that is first.
func TestTurnEndsWithTheConnection(t *testing.T) {
	k := newKeeper(Config{}, 10*time.Second, confirms{})
	k.now += 9 * time.Second
	k.step(claim.Disconnected{})
	k.now += time.Minute
	k.step(claim.Tick{})
	k.lease.Sent = moment(k.now)
	k.step(claim.Attached{Session: 7, Lease: k.lease})
	if st := k.e.State(); st.Phase != Leading {
		t.Errorf("%+v", st)
	}
}
