package server

import (
	"errors"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/driver"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// memberAlone makes a server of an ensemble with its log writer, but without a running loop: the test
// takes the place of the loop and its replica.
func memberAlone(t *testing.T) (*Server, *logWriter) {
	t.Helper()
	g := newTestEnsemble(t, 3, 0, false)
	c := testConfig()
	c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID = g.members, 1, true
	s, err := New(Options{Config: c, FS: store.NewMem(1), Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.load(); err != nil {
		t.Fatal(err)
	}
	return s, newLogWriter(s, newSnapshots(s, 1, make(chan struct{}, 1)))
}

// logged returns a transaction that creates a session.
func logged(z wire.Zxid) *record.Txn {
	return &record.Txn{TxnHeader: record.TxnHeader{Session: wire.SessionID(z), Zxid: z, Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 1000}}
}

// told returns the answers of the log writer since the last call.
func (s *Server) told() (out []replica.Event) {
	for _, e := range s.inbox.take(nil) {
		out = append(out, e.event)
	}
	return out
}

// TestDutiesInOrder: duties are carried out and answered in their order. Several duties that only
// append are answered together.
func TestDutiesInOrder(t *testing.T) {
	s, w := memberAlone(t)
	for _, d := range []replica.Duty{
		{SaveAccepted: 1, Generation: 1},
		{Append: []*record.Txn{logged(1<<32 + 1)}, Generation: 2},
		{Append: []*record.Txn{logged(1<<32 + 2)}, Sync: true, Generation: 2},
		{Sync: true, SaveCurrent: 1, Generation: 2},
		{Append: []*record.Txn{logged(1<<32 + 3)}, Generation: 3},
		{Truncate: &zab.Truncate{Zxid: 1<<32 + 2}, Generation: 4},
		{Append: []*record.Txn{logged(2<<32 + 1)}, Generation: 4},
		{Truncate: &zab.Truncate{Zxid: 1<<32 + 1, Rebuild: true}, Rebuild: true, Generation: 5},
	} {
		s.journal.push(driver.Task{Duty: d})
	}
	w.write()
	var rebuilt *replica.Rebuilt
	got := s.told()
	if r, ok := got[len(got)-1].(replica.Rebuilt); ok {
		rebuilt, got = &r, got[:len(got)-1]
	}
	want := []replica.Event{
		replica.Zab{Event: zab.Saved{Accepted: 1, Generation: 1}},
		replica.Synced{Zxid: 1<<32 + 2, Generation: 2},
		replica.Synced{Zxid: 1<<32 + 2, Generation: 2},
		replica.Zab{Event: zab.Saved{Current: 1, Generation: 2}},
		replica.Synced{Zxid: 1<<32 + 3, Generation: 3},
		replica.Synced{Zxid: 2<<32 + 1, Generation: 4},
	}
	if len(got) != len(want) {
		t.Fatalf("told %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("told %v, want %v", got[i], want[i])
		}
	}
	if rebuilt == nil || rebuilt.Tree.LastZxid() != 1<<32+1 || s.historyLock.tree != rebuilt.Tree {
		t.Errorf("rebuilt %v", rebuilt)
	}
	if z := s.store.LastZxid(); z != 1<<32+1 {
		t.Errorf("the log ends at %v", z)
	}
}

// TestRefusalVoidsWhatIsQueued: after a refusal, all duties are void until the replica
// has been told of it.
func TestRefusalVoidsWhatIsQueued(t *testing.T) {
	s, w := memberAlone(t)
	s.journal.push(driver.Task{Duty: replica.Duty{SaveAccepted: 1, Generation: 1}})
	w.write()
	s.told()
	s.journal.push(driver.Task{Duty: replica.Duty{Append: []*record.Txn{logged(1<<32 + 1)}, Generation: 1}})
	s.journal.push(driver.Task{Duty: replica.Duty{Truncate: &zab.Truncate{Zxid: 7 << 32}, Generation: 2}})
	s.journal.push(driver.Task{Duty: replica.Duty{Append: []*record.Txn{logged(1<<32 + 2)}, Generation: 2}})
	w.write()
	s.journal.push(driver.Task{Duty: replica.Duty{SaveAccepted: 9, Generation: 3}})
	w.write()
	got := s.told()
	if len(got) != 2 || got[0] != (replica.Synced{Zxid: 1<<32 + 1, Generation: 1}) {
		t.Fatalf("told %v", got)
	}
	r, ok := got[1].(replica.Zab)
	if e, is := r.Event.(zab.Refused); !ok || !is || e.Zxid != 1<<32+1 || e.Generation != 2 || e.Why == "" {
		t.Errorf("told %+v", got[1])
	}
	s.journal.reopen()
	s.journal.push(driver.Task{Duty: replica.Duty{Append: []*record.Txn{logged(1<<32 + 2)}, Generation: 4}})
	w.write()
	if got := s.told(); len(got) != 1 || got[0] != (replica.Synced{Zxid: 1<<32 + 2, Generation: 4}) {
		t.Errorf("told %v", got)
	}
	if e, err := s.store.Epochs(); err != nil || e.Accepted != 1 {
		t.Errorf("epochs %+v, %v", e, err)
	}
}

// TestFullDiskIsReported: the log writer reports a full disk with two events: LogFull, upon which the
// server leaves the quorum, and then a refusal for Zab. It reports once when the disk has space again.
func TestFullDiskIsReported(t *testing.T) {
	s, w := memberAlone(t)
	fs := s.opt.FS.(*store.Mem)
	s.journal.push(driver.Task{Duty: replica.Duty{Append: []*record.Txn{logged(1<<32 + 1)}, Generation: 1}})
	w.write()
	s.told()
	fs.SetSpace(0)
	s.journal.push(driver.Task{Duty: replica.Duty{SaveCurrent: 3, Generation: 1}})
	w.write()
	got := s.told()
	if len(got) != 2 || got[0] != (replica.LogFull{Zxid: 1<<32 + 1, Generation: 1}) {
		t.Fatalf("told %v", got)
	}
	w.probe()
	if got := s.told(); len(got) != 0 {
		t.Errorf("told %v", got)
	}
	fs.SetSpace(-1)
	w.probe()
	if got := s.told(); len(got) != 1 || got[0] != (replica.LogFree{}) {
		t.Errorf("told %v", got)
	}
}

// TestFailedSyncEndsAMember: a failed fsync ends the server, because the state of the disk is then
// unknown.
func TestFailedSyncEndsAMember(t *testing.T) {
	s, w := memberAlone(t)
	s.opt.FS.(*store.Mem).Fail(store.OpSync, 1, errors.New("broken"))
	s.journal.push(driver.Task{Duty: replica.Duty{Append: []*record.Txn{logged(1<<32 + 1)}, Generation: 1}})
	w.write()
	if got := s.told(); len(got) != 0 {
		t.Errorf("told %v", got)
	}
	select {
	case <-s.dead:
	default:
		t.Error("the server goes on")
	}
}

// TestServerWithoutMarkerJoins: a server that may not begin a history joins an existing one. It then
// stores its first snapshot before its first log.
func TestServerWithoutMarkerJoins(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	fresh := g.servers[2]
	for _, m := range g.servers[:2] {
		g.start(m)
	}
	g.settled()
	g.leader().connect().create("/a", "x")
	g.change = func(c *config.Config) { c.Storage.AutocreateDB = false }
	g.start(fresh)
	g.settled()
	g.equal()
	fresh.connect().create("/b", "")
	g.kill(fresh)
	g.start(fresh)
	g.settled()
	g.equal()
}
