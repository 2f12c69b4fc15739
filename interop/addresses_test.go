package interop

import (
	"context"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestEnsembleAddresses runs ensembles with addresses other than 127.0.0.1, of Bellwether
// only and together with ZooKeeper. They elect a leader, lose it and elect another one, and
// a client of another server sees what was written before.
func TestEnsembleAddresses(t *testing.T) {
	t.Parallel()
	ours, theirs := target.Bellwether, target.Apache
	for name, opt := range map[string]target.EnsembleOptions{
		"IPv6":                        {Loopback: "::1", Kinds: []target.Kind{ours, ours, ours}},
		"IPv6 mixed":                  {Loopback: "::1", Kinds: []target.Kind{ours, theirs, ours}},
		"one of two networks":         {Dead: "192.0.2.7", Kinds: []target.Kind{ours, ours, ours}},
		"one of two networks, mixed":  {Dead: "192.0.2.7", Loopback: "::1", Kinds: []target.Kind{ours, theirs, ours}},
		"one of two networks, theirs": {Dead: "192.0.2.7", Kinds: []target.Kind{theirs, ours, theirs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt.Properties = []string{"zookeeper.multiAddress.enabled=true"}
			opt.Extra = map[string]string{"initLimit": "20", "syncLimit": "10"}
			loseLeader(t, target.EnsembleFor(t, opt))
		})
	}
}

// loseLeader writes, kills the leader, and reads from another server.
func loseLeader(t *testing.T, e *target.Ensemble) {
	t.Helper()
	leader, err := e.AwaitWhole(figuresTimeout)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := zk.Connect(ctx, e.Addrs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, _, err := c.Create(ctx, "/before", []byte("x")); err != nil {
		t.Fatal(err)
	}
	e.Servers[leader].Kill()
	if _, err := e.AwaitLeader(figuresTimeout, leader); err != nil {
		t.Fatal(err)
	}
	for i, s := range e.Servers {
		if i == leader {
			continue
		}
		other, err := zk.Connect(ctx, s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = other.Sync(ctx, "/")
		if err == nil {
			_, _, err = other.Get(ctx, "/before")
		}
		if err != nil {
			t.Errorf("server %d: %v", i+1, err)
		}
		other.Close(ctx)
	}
}
