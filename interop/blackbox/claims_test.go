package blackbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// claimTimeout is the session timeout of candidates.
const claimTimeout = 3 * time.Second

// leaseDelay returns how old the knowledge of a server that answers a ping may be, by the rule for every
// ZooKeeper server: syncLimit+2 ticks.
func leaseDelay(t *testing.T, lines map[string]string) time.Duration {
	t.Helper()
	limit, err1 := strconv.Atoi(lines["syncLimit"])
	tick, err2 := strconv.Atoi(lines["tickTime"])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return time.Duration((limit+2)*tick) * time.Millisecond
}

// claims is a set of candidates of one election, and the record of all their claims.
type claims struct {
	t     testing.TB
	began time.Time
	group sync.WaitGroup
	ctx   context.Context // the context of the candidates
	stop  context.CancelFunc
	// unproven: the servers are ZooKeeper's, which prove no claim
	unproven bool
	options  recipe.ElectionOptions
	faults   atomic.Int64 // moments with two claims, and claims that began before the end of an earlier one

	mu  sync.Mutex
	all []*claim
}

// claim is one handle, from when it was obtained until its context ended, by the monotonic
// clock.
type claim struct {
	who        string
	token      wire.Zxid
	begin, end time.Duration // times since the start of the test; end is 0 while the claim lasts
	proof      error
	handle     *recipe.Handle
}

// stand starts a candidate for each client. A leader leads until its claim is lost.
func (s *scene) stand(clients map[string]*zk.Client) *claims {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &claims{t: s.t, began: time.Now(), ctx: ctx, stop: stop, options: recipe.ElectionOptions{ACL: s.access.acl, LeaseDelay: s.lease}}
	s.t.Cleanup(func() {
		stop()
		c.group.Wait()
	})
	for who, client := range clients {
		c.join(who, client)
	}
	c.group.Go(func() { c.sample(ctx) })
	return c
}

// join adds a candidate.
func (c *claims) join(who string, client *zk.Client) {
	c.t.Helper()
	options := c.options
	e, err := recipe.NewElection(client, "/election", who, &options)
	if err != nil {
		c.t.Fatal(err)
	}
	c.group.Go(func() { c.campaign(c.ctx, e, who) })
}

// candidates returns a client for each server.
func (s *scene) candidates() map[string]*zk.Client {
	all := map[string]*zk.Client{}
	for i, server := range s.e.Servers {
		all[nameAt(i)] = s.client(server.Addr, claimTimeout)
	}
	return all
}

// nameAt returns the name of the candidate at a server.
func nameAt(server int) string { return fmt.Sprintf("at%d", server+1) }

func (c *claims) campaign(ctx context.Context, e *recipe.Election, who string) {
	for {
		h, err := e.Campaign(ctx)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, zk.ErrClosed) {
				c.t.Errorf("candidate %s: %v", who, err)
			}
			return
		}
		k := &claim{who: who, token: h.Token(), begin: time.Since(c.began), proof: h.Proof(), handle: h}
		c.mu.Lock()
		c.all = append(c.all, k)
		c.mu.Unlock()
		select {
		case <-h.Context().Done():
		case <-ctx.Done():
		}
		c.mu.Lock()
		k.end = time.Since(c.began)
		c.mu.Unlock()
	}
}

// sample checks continuously that no two handles have time left at the same moment.
func (c *claims) sample(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		all := slices.Clone(c.all)
		c.mu.Unlock()
		var holds []*claim
		for _, k := range all {
			if k.handle.Left() > 0 {
				holds = append(holds, k)
			}
		}
		// The first claim may have ended while the other claims were read.
		if len(holds) > 1 && holds[0].handle.Left() > 0 && holds[1].handle.Left() > 0 {
			c.faults.Add(1)
			c.t.Errorf("%s and %s both have time left", holds[0].who, holds[1].who)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// holder waits until a candidate that is not in the list has a claim that has not ended.
func (c *claims) holder(not ...string) *claim {
	c.t.Helper()
	for end := time.Now().Add(waitMax); ; <-time.After(5 * time.Millisecond) {
		c.mu.Lock()
		for _, k := range c.all {
			if k.end == 0 && !slices.Contains(not, k.who) && k.handle.Left() > 0 {
				c.mu.Unlock()
				return k
			}
		}
		c.mu.Unlock()
		if time.Now().After(end) {
			c.t.Fatalf("no claim of others than %v within %v", not, waitMax)
		}
	}
}

// end stops the candidates and checks that each claim ended before the next one began, that the
// tokens grew, and that each claim was proven.
func (c *claims) end() {
	c.stop()
	c.group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Since(c.began)
	slices.SortFunc(c.all, func(a, b *claim) int { return cmp.Compare(a.begin, b.begin) })
	for i, k := range c.all {
		if k.end == 0 {
			k.end = now
		}
		if k.proof != nil && !c.unproven {
			c.t.Errorf("claim %s was not proven: %v", k, k.proof)
		}
		if i == 0 {
			continue
		}
		if before := c.all[i-1]; k.begin <= before.end || k.token <= before.token {
			c.faults.Add(1)
			c.t.Errorf("claim %s began before %s had ended, or has no larger token", k, before)
		}
	}
}

func (k *claim) String() string {
	return fmt.Sprintf("of %s, token %v, from %v to %v", k.who, k.token, k.begin, k.end)
}
