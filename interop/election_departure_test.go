package interop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// TestElectionDeparturesCostOneEvent shows, with 3, 50 and 500 candidates, that the departure
// of a leader, or of a candidate in the middle, causes exactly one watch event and wakes
// exactly one candidate. This holds for a resignation, a close, the session's expiry and a
// kill -9 of the process. Observers of the leader get at most two events per change.
func TestElectionDeparturesCostOneEvent(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		for _, n := range []int{3, 50, 500} {
			t.Run(fmt.Sprint(n), func(t *testing.T) { departures(t, s, n) })
		}
	})
}

// queue is a line of candidates, with the leader first. All of them connect through the meter m.
type queue struct {
	t         *testing.T
	m         *meter
	parent    string
	line      []contender
	observers []*observer
}

// contender is a candidate of either kind.
type contender struct {
	*candidate
	*remote
}

func departures(t *testing.T, s *target.Server, n int) {
	q := &queue{t: t, m: newMeter(t, s.Addr), parent: fresh("election") + "/job"}
	ways := []string{"resign", "close", "expire", "kill"}
	for _, way := range ways {
		q.join(way) // the leader that leaves in this way
		q.join(way) // the next candidate in line
		q.join("stay")
	}
	for len(q.line) < 3*len(ways)+n-1 { // so that n candidates are left at the last departure
		q.join("stay")
	}
	for range 3 {
		q.observers = append(q.observers, observeLeader(t, q.m.Addr, q.parent))
	}
	q.awaitLeader()
	for _, way := range ways {
		q.depart(1, way)
		q.depart(0, way)
		q.depart(0, "resign") // the remaining candidate leaves, so that the next pair is first
	}
}

// join adds a candidate that will leave in a certain way.
func (q *queue) join(way string) {
	timeout := electionTimeout
	if way == "expire" {
		timeout = briefTimeout
	}
	if way == "kill" {
		q.line = append(q.line, contender{remote: standRemote(q.t, q.m.Addr, q.parent, "")})
		return
	}
	id := fmt.Sprintf("%s-%d", way, len(q.line))
	q.line = append(q.line, contender{candidate: stand(q.t, q.m.Addr, q.parent, id, timeout, recipe.ElectionOptions{})})
}

// depart makes the ith candidate leave and checks the number of events.
func (q *queue) depart(i int, way string) {
	q.t.Helper()
	leader := i == 0
	goes := q.line[i]
	q.line = append(append([]contender(nil), q.line[:i]...), q.line[i+1:]...)
	next := q.line[i]
	next.forget()
	seen := len(q.m.since(0))
	woken := q.woken()

	q.leave(goes, way)
	if leader {
		q.awaitLeader()
	} else {
		next.awaitWaiting(q.t)
	}
	q.barrier()
	var bids, notices []metered
	for _, e := range q.m.since(seen) {
		if strings.HasSuffix(e.path, "/LEADER") {
			notices = append(notices, e)
		} else {
			bids = append(bids, e)
		}
	}
	what := fmt.Sprintf("%s of number %d of %d", way, i, len(q.line)+1)
	if len(bids) != 1 || bids[0].typ != wire.EventNodeDeleted {
		q.t.Errorf("%s: events %+v, want one deletion", what, bids)
	}
	if got := q.woken() - woken; next.candidate != nil && got != 1 || next.remote != nil && got != 0 {
		q.t.Errorf("%s: %d candidates woken", what, got)
	}
	q.checkNotices(what, notices, leader)
}

// checkNotices fails the test if an observer got more than two events when the leader left, or any
// event when another candidate left, or if others than the observers got an event of LEADER.
func (q *queue) checkNotices(what string, notices []metered, leader bool) {
	for _, o := range q.observers {
		mine := 0
		for _, e := range notices {
			if e.session == o.c.Session().ID {
				mine++
			}
		}
		if mine > 2 || mine > 0 && !leader {
			q.t.Errorf("%s: an observer got %d events", what, mine)
		}
		notices = deleteSession(notices, o.c.Session().ID)
	}
	if len(notices) > 0 {
		q.t.Errorf("%s: clients other than the observers got events of LEADER: %+v", what, notices)
	}
}

func deleteSession(events []metered, id wire.SessionID) (rest []metered) {
	for _, e := range events {
		if e.session != id {
			rest = append(rest, e)
		}
	}
	return rest
}

// leave makes a candidate leave.
func (q *queue) leave(c contender, way string) {
	ctx, cancel := context.WithTimeout(q.t.Context(), electionWait)
	defer cancel()
	switch way {
	case "resign":
		if err := c.e.Resign(ctx); err != nil {
			q.t.Fatal(err)
		}
	case "close":
		c.candidate.close(q.t)
	case "expire":
		c.gone.Store(true)
		q.m.of(c.c.Session().ID, (*passage).freeze)
		detached := c.c
		q.t.Cleanup(func() { detached.Detach() })
	case "kill":
		c.kill()
	}
}

// awaitLeader waits until the first in the line leads, all observers know it, and no further
// event is due.
func (q *queue) awaitLeader() {
	q.t.Helper()
	first := q.line[0]
	var id string
	if first.remote != nil {
		first.await(q.t, "leads")
		id = "remote"
	} else {
		select {
		case h := <-first.leads:
			awaitPublished(q.t, h)
		case err := <-first.ended:
			q.t.Fatalf("%s: %v", first.id, err)
		case <-time.After(electionWait):
			q.t.Fatalf("%s does not lead within %v", first.id, electionWait)
		}
		id = first.id
	}
	for _, o := range q.observers {
		o.await(q.t, id)
	}
}

func awaitPublished(t *testing.T, h *recipe.Handle) {
	t.Helper()
	for end := time.Now().Add(electionWait); time.Now().Before(end); <-time.After(time.Millisecond) {
		if ok, err := h.Published(); ok {
			return
		} else if err != nil {
			t.Fatalf("not published: %v", err)
		}
	}
	t.Fatalf("not published within %v", electionWait)
}

// barrier waits until all events have arrived: the reply to a sync follows them.
func (q *queue) barrier() {
	ctx, cancel := context.WithTimeout(q.t.Context(), electionWait)
	defer cancel()
	var all sync.WaitGroup
	ask := func(c *zk.Client) {
		all.Go(func() {
			if err := c.Sync(ctx, "/"); err != nil {
				q.t.Errorf("sync: %v", err)
			}
		})
	}
	for _, c := range q.line {
		if c.candidate != nil {
			ask(c.c)
		}
	}
	for _, o := range q.observers {
		ask(o.c)
	}
	all.Wait()
}

func (q *queue) woken() (n int) {
	for _, c := range q.line {
		if c.candidate != nil {
			n += int(c.woken.Load())
		}
	}
	return n
}

// forget discards earlier reports.
func (c contender) forget() {
	if c.remote != nil {
		for len(c.lines) > 0 {
			<-c.lines
		}
		return
	}
	for len(c.waits) > 0 {
		<-c.waits
	}
}

// awaitWaiting waits until the candidate has settled behind another one.
func (c contender) awaitWaiting(t *testing.T) {
	t.Helper()
	if c.remote != nil {
		c.await(t, "waits")
		return
	}
	select {
	case <-c.waits:
	case <-time.After(electionWait):
		t.Fatalf("%s is not woken within %v", c.id, electionWait)
	}
}

// observer follows LEADER with its own client.
type observer struct {
	c    *zk.Client
	seen chan recipe.Leader
}

func observeLeader(t *testing.T, addr, parent string) *observer {
	t.Helper()
	k := newCandidate(t, addr, parent, "observer", electionTimeout, recipe.ElectionOptions{})
	o := &observer{c: k.c, seen: make(chan recipe.Leader, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for l, err := range k.e.Observe(ctx) {
			if err == nil && !l.Vacant() {
				o.seen <- l
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return o
}

// await waits until the observer has seen a leader with this id.
func (o *observer) await(t *testing.T, id string) {
	t.Helper()
	timeout := time.After(electionWait)
	for {
		select {
		case l := <-o.seen:
			if l.ID == id {
				return
			}
		case <-timeout:
			t.Fatalf("an observer does not hear of %s within %v", id, electionWait)
		}
	}
}
