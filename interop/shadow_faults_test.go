package interop

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// tally returns the counts of an operation.
func tallyOf(r *shadow.Report, op string) shadow.Tally {
	if t := r.Operations[op]; t != nil {
		return *t
	}
	return shadow.Tally{}
}

// TestShadowOfLargeReplies compares a list of 100,000 children and a znode of 3 MiB.
func TestShadowOfLargeReplies(t *testing.T) {
	t.Parallel()
	s := shadowEnsembleWith(t, nil, "jute.maxbuffer=8388608")
	run := s.run(t, s.observer, s.e.Servers[0])
	c := rawShadowClient(t, run.addr, nil)
	create := func(path string, data []byte) wire.Op {
		return wire.Op{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path, Data: data, ACL: wire.OpenACL()}}
	}
	must := func(op wire.OpCode, body wire.Record) {
		t.Helper()
		if code := c.call(op, body); code != wire.OK {
			t.Fatalf("%v: %v", op, code)
		}
	}
	must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{create("/many", nil), create("/large", nil)}})
	for i := range 50 {
		var ops []wire.Op
		for j := range 2000 {
			ops = append(ops, create(fmt.Sprintf("/many/a-child-with-a-long-name-%03d-%04d", i, j), nil))
		}
		must(wire.OpMulti, &wire.MultiRequest{Ops: ops})
	}
	must(wire.OpSetData, &wire.SetDataRequest{Path: "/large", Data: make([]byte, 3<<20), Version: -1})
	must(wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/many", Watch: true})
	must(wire.OpGetData, &wire.PathWatchRequest{Path: "/large", Watch: true})
	must(wire.OpGetAllChildrenNumber, &wire.PathRequest{Path: "/many"})
	run.settle(t, c)
	must(wire.OpDelete, &wire.PathVersionRequest{Path: "/large", Version: -1})
	c.event("/large")
	run.settle(t, c)
	report := run.end()
	noDifference(t, report, "getChildren2 getData getAllChildrenNumber delete notification")
	if cut := tallyOf(report, "setData").NotCompared[shadow.NotCut]; cut != 1 {
		t.Errorf("%d large requests were counted", cut)
	}
}

// TestShadowSurvivesFaults kills the observer and suspends it, and kills the old server of the client, which resumes its session at
// another one and sets its watches again. The client notices only the death of the old server, and there is no difference.
func TestShadowSurvivesFaults(t *testing.T) {
	t.Parallel()
	s := shadowEnsemble(t)
	observer := s.e.Servers[3]
	leader, err := s.e.AwaitLeader(eventTimeout)
	if err != nil {
		t.Fatal(err)
	}
	order := []*target.Server{s.e.Servers[leader], s.e.Servers[(leader+1)%3], s.e.Servers[(leader+2)%3]}
	run := s.run(t, s.observer, order...)
	c := rawShadowClient(t, run.addr, nil)
	for run.Report().Connections%3 != 0 { // the next connection goes to the leader
		rawShadowClient(t, run.addr, nil)
	}
	c = rawShadowClient(t, run.addr, nil)
	watched := func(c *rawClient, path string) {
		t.Helper()
		if code := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: path, Watch: true}); code != wire.OK {
			t.Fatal(code)
		}
	}
	compared := func(what string) {
		t.Helper()
		before := tallyOf(run.Report(), "getData").Equal
		run.await(t, "comparison after "+what, func(r *shadow.Report) bool {
			watched(c, "/f")
			return tallyOf(r, "getData").Equal > before
		})
		run.settle(t, c)
		before = tallyOf(run.Report(), "notification").Equal
		run.await(t, "event after "+what, func(r *shadow.Report) bool {
			watched(c, "/f")
			run.settle(t, c)
			c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/f", Data: []byte(what), Version: -1})
			run.settle(t, c)
			return tallyOf(run.Report(), "notification").Equal > before
		})
	}
	if code := c.call(wire.OpCreate, &wire.CreateRequest{Path: "/f", ACL: wire.OpenACL()}); code != wire.OK {
		t.Fatal(code)
	}
	c.call(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/f"})
	compared("the start")
	observer.Kill()
	watched(c, "/f")
	if err := observer.Restart(); err != nil {
		t.Fatal(err)
	}
	compared("the restart of the observer")
	if err := observer.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		watched(c, "/f")
	}
	if err := observer.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	compared("the observer's pause")
	watched(c, "/f")
	for _, server := range order {
		if text, err := server.Word("cons"); err == nil && strings.Contains(text, fmt.Sprintf("sid=0x%x", int64(c.session.Session))) {
			server.Kill()
		}
	}
	if _, err := s.e.AwaitLeader(eventTimeout); err != nil {
		t.Fatal(err)
	}
	c = resumed(t, run.addr, c)
	if code := c.call(wire.OpSetWatches2, &wire.SetWatches2Request{SetWatchesRequest: wire.SetWatchesRequest{RelativeZxid: c.zxid, Data: []string{"/f"}}, Persistent: []string{"/f"}}); code != wire.OK {
		t.Errorf("setWatches: %v", code)
	}
	compared("the death of the old server")
	noDifference(t, run.end(), "getData setData addWatch notification")
}

// resumed resumes a session at a server that has a leader again.
func resumed(t *testing.T, addr string, of *rawClient) *rawClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	other, err := zk.Connect(ctx, addr, nil) // waits until servers answer again
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	return rawShadowClient(t, addr, of)
}

// TestShadowOfReadOnlyServers has a client at a server without a quorum, which only reads.
func TestShadowOfReadOnlyServers(t *testing.T) {
	t.Parallel()
	s := shadowEnsembleWith(t, map[string]string{"localSessionsEnabled": "true"}, "readonlymode.enabled=true") // else ZooKeeper 3.8.0 opens no sessions
	run := s.runWith(t, relay.Options{Observer: s.observer}, s.e.Servers[0])
	c := rawShadowClient(t, run.addr, nil)
	if code := c.call(wire.OpCreate, &wire.CreateRequest{Path: "/r", ACL: wire.OpenACL()}); code != wire.OK {
		t.Fatal(code)
	}
	run.settle(t, c)
	s.e.Servers[1].Kill()
	s.e.Servers[2].Kill()
	readOnly(t, run.addr)
	if text, err := target.Word(run.addr, "ruok"); err != nil || text != "imok" {
		t.Errorf("a four-letter word: %q, %v", text, err)
	}
	noDifference(t, run.end(), "create")
}

// readOnly waits until a server admits a client that only reads, and reads.
func readOnly(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	c, err := zk.Connect(ctx, addr, &zk.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, _, err := c.Get(ctx, "/r"); err != nil {
		t.Error(err)
	}
	if _, err := c.Set(ctx, "/r", nil, -1); err == nil {
		t.Error("a server without a quorum writes")
	}
}
