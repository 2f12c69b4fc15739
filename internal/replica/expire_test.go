package replica

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// expiring returns a standalone replica with sessions whose timeout has passed, after the Tick that finds that.
func expiring(sessions, most int) *Replica {
	tr := tree.New(tree.Options{Seed: 1})
	for i := 1; i <= sessions; i++ {
		tr.Replay(&record.Txn{TxnHeader: record.TxnHeader{Session: wire.SessionID(i), Zxid: wire.Zxid(i), Type: wire.OpCreateSession},
			Body: &record.CreateSessionTxn{TimeoutMS: 1000}})
	}
	r := New(tr, Options{ServerID: 1, TickMS: 500, ExpireMax: most}, Time{Wall: 1})
	for mono := int64(500); mono <= 1500; mono += 500 {
		r.Step(Time{Mono: mono, Wall: 1 + mono}, Tick{})
	}
	return r
}

// logged returns the transactions that are to be logged now, makes them durable and applies them.
func (r *Replica) logged() (txns []*record.Txn) {
	for _, d := range r.Ready().Duties {
		txns = append(txns, d.Append...)
	}
	if len(txns) > 0 {
		r.Step(r.now, Synced{Zxid: txns[len(txns)-1].Zxid, Generation: r.alone.generation})
	}
	for {
		if _, ok := r.Next(); !ok {
			return txns
		}
	}
}

// TestManySessionsExpireInTurns: of many sessions that expire at the same time only some end at once, so that the writes of clients do
// not wait for all of them. The next ones end as soon as these have ended.
func TestManySessionsExpireInTurns(t *testing.T) {
	const sessions, most = 1000, 256
	r := expiring(sessions, 0)
	last := wire.SessionID(0)
	for turn := 0; last < sessions; turn++ {
		if !r.Unsettled() {
			t.Fatalf("after session %d nothing is to be done", last)
		}
		txns := r.logged()
		if want := min(most, int(sessions-last)); len(txns) != want {
			t.Fatalf("turn %d ends %d sessions, want %d", turn, len(txns), want)
		}
		for _, x := range txns {
			if last++; x.Type != wire.OpCloseSession || x.Session != last {
				t.Fatalf("%+v, want the end of session %d", x, last)
			}
		}
	}
	if r.Unsettled() || len(r.logged()) > 0 || r.tree.Counts().Sessions != 0 {
		t.Errorf("unsettled %v, %d sessions left", r.Unsettled(), r.tree.Counts().Sessions)
	}
}

// TestNextTurnWaitsForTheDisk: no more sessions end before the ends of the first ones are applied. All have expired nevertheless, so that no
// reader answers their clients by itself.
func TestNextTurnWaitsForTheDisk(t *testing.T) {
	r := expiring(5, 2)
	rd := r.Ready()
	if n := len(rd.Duties[0].Append); n != 2 || rd.Wake != r.now.Mono+expirePauseMS {
		t.Fatalf("%d sessions end first, the next ones by %d, now is %d", n, rd.Wake, r.now.Mono)
	}
	r.Step(Time{Mono: rd.Wake - 1, Wall: 2000}, Wake{})
	if d := r.Ready().Duties; len(d) > 0 || r.Unsettled() {
		t.Fatalf("%+v while the disk is busy", d)
	}
	for id := range wire.SessionID(5) {
		if !r.Ending(id + 1) {
			t.Errorf("session %d goes on", id+1)
		}
	}
	r.Step(r.now, Synced{Zxid: 7, Generation: r.alone.generation})
	r.Next()
	var ended []wire.SessionID
	for r.Unsettled() {
		for _, x := range r.logged() {
			ended = append(ended, x.Session)
		}
	}
	if len(ended) != 3 || ended[0] != 3 || ended[2] != 5 {
		t.Errorf("then %v end, want 3, 4 and 5", ended)
	}
}

// TestFullDiskSparesExpiredSessions: the disk becomes full before the end of a session is proposed. The session goes on with its full timeout.
func TestFullDiskSparesExpiredSessions(t *testing.T) {
	r := expiring(3, 1)
	r.Ready()
	r.Step(r.now, LogFull{Zxid: 3, Generation: r.alone.generation})
	for id := range wire.SessionID(3) {
		if r.Ending(id + 1) {
			t.Errorf("session %d ends", id+1)
		}
	}
	if buckets := r.Expiring(); len(buckets) != 1 || len(buckets[0].Sessions) != 3 || r.Unsettled() {
		t.Errorf("%+v, unsettled %v", buckets, r.Unsettled())
	}
}

// TestFullDiskKeepsTimeouts: sessions go on with the timeout of their newest connection, not with the one that they were created with,
// when their ends are taken back because the disk becomes full, and when there is space again, also if the connections are lost meanwhile.
func TestFullDiskKeepsTimeouts(t *testing.T) {
	for _, lost := range []bool{false, true} {
		tr := tree.New(tree.Options{Seed: 1})
		for id := range wire.SessionID(2) {
			tr.Replay(&record.Txn{TxnHeader: record.TxnHeader{Session: id + 1, Zxid: wire.Zxid(id + 1), Type: wire.OpCreateSession},
				Body: &record.CreateSessionTxn{TimeoutMS: 1000}})
		}
		r := New(tr, Options{ServerID: 1, TickMS: 500, ExpireMax: 1}, Time{Wall: 1})
		for id := range wire.SessionID(2) {
			pw := (id + 1).Password()
			r.Step(r.now, Connect{Conn: ConnID(id + 1), Session: id + 1, Password: pw[:], TimeoutMS: 10_000})
			if o, _ := r.Next(); o.Session != id+1 || o.TimeoutMS != 10_000 {
				t.Fatalf("not attached: %+v", o)
			}
		}
		for !r.Ending(2) {
			r.Step(Time{Mono: r.now.Mono + 500, Wall: r.now.Wall + 500}, Tick{})
		}
		r.Ready()
		check := func(when string) {
			t.Helper()
			all := r.Expiring()
			if len(all) != 1 || len(all[0].Sessions) != 2 || all[0].Deadline <= r.now.Mono+10_000 {
				t.Errorf("lost %v, %s: sessions of 10 s at %d: %+v", lost, when, r.now.Mono, all)
			}
		}
		r.Step(r.now, LogFull{Zxid: 2, Generation: r.alone.generation})
		check("the disk is full")
		if lost {
			r.Step(r.now, Disconnected{Conn: 1})
			r.Step(r.now, Disconnected{Conn: 2})
		}
		r.Step(r.now, LogFree{})
		if r.Ready(); r.alone.full {
			t.Fatal("writes are refused")
		}
		check("there is space again")
	}
}

// TestPauseSparesExpiredSessions: the process stands still before the ends of all expired sessions are proposed. The others go on, because
// their clients may have sent something meanwhile.
func TestPauseSparesExpiredSessions(t *testing.T) {
	for name, e := range map[string]Event{"the next event": Wake{}, "a tick": Tick{}} {
		r := expiring(3, 1)
		r.Ready()
		r.Step(Time{Mono: 9000, Wall: 9000}, e)
		if rd := r.Ready(); len(rd.Duties) > 0 || r.Unsettled() || r.Ending(2) || !r.Ending(1) {
			t.Errorf("%s: %+v, session 2 ends: %v", name, rd, r.Ending(2))
		}
	}
}

// TestTurnsOnASlowDisk: the next sessions end after a short time although the ends of the first ones are not applied.
func TestTurnsOnASlowDisk(t *testing.T) {
	r := expiring(5, 2)
	for _, want := range []int{2, 2, 1} {
		rd := r.Ready()
		if len(rd.Duties) != 1 || len(rd.Duties[0].Append) != want {
			t.Fatalf("%+v, want the ends of %d sessions", rd.Duties, want)
		}
		r.Step(Time{Mono: min(rd.Wake, r.now.Mono+500), Wall: 2000}, Wake{})
	}
	if rd := r.Ready(); len(rd.Duties) > 0 || rd.Wake != Never || r.Unsettled() {
		t.Errorf("%+v after the last one", rd)
	}
}

// TestSessionLivesIfHeardBeforeItsEnd: two sessions expire at the same tick, and their ends are proposed one after the other. The second
// one lives on if its client is heard from before its end is proposed: a server may have answered the client already.
func TestSessionLivesIfHeardBeforeItsEnd(t *testing.T) {
	type scene struct {
		h      *cluster
		s      []*server
		client *client
		conn   ConnID
	}
	ping := func(c scene) {
		c.client.at.inbox = append(c.client.at.inbox, &Request{Conn: c.conn, Xid: wire.XidPing, Op: wire.OpPing})
	}
	write := func(c scene) { c.h.create(c.client.at, c.conn, 1, "/n") }
	for name, test := range map[string]struct {
		at    int // the server of the sessions; 0 leads
		heard func(scene)
		late  bool // what the follower sends arrives when the next end is due
	}{
		"ping at a follower":                 {1, ping, false},
		"ping, when the next end is due":     {1, ping, true},
		"write at a follower":                {1, write, false},
		"write, when the next end is due":    {1, write, true},
		"ping at the leader":                 {0, ping, false},
		"write at the leader":                {0, write, false},
		"new connection to another follower": {1, func(c scene) { c.h.connect(c.s[2], c.client.session) }, false},
		"new connection to the leader":       {1, func(c scene) { c.h.connect(c.s[0], c.client.session) }, false},
	} {
		h, s := leaderFirst(t, false)
		h.expireMax = 1
		h.restart()
		h.run(1000)
		if h.leader() != s[0] {
			t.Fatal("another server leads")
		}
		first, _ := h.connect(s[test.at], 0)
		second, id := h.connect(s[test.at], 0)
		h.run(s[0].r.Expiring()[0].Deadline - 1 - h.now.Mono)
		fromTwo, fromOne := h.packets(s[2], s[0]), h.packets(s[1], s[0])
		h.delay = func(at *server, e Event) bool { // nothing is committed
			_, synced := e.(Synced)
			return synced && at == s[1] || synced && at == s[2] && !test.late || test.late && (fromOne(at, e) || fromTwo(at, e))
		}
		h.run(1)
		if !s[0].r.Ending(first.session) || !s[0].r.Ending(second.session) || len(s[0].r.doomed) != 1 {
			t.Fatalf("%s: the scene needs one end that is proposed and one that is not", name)
		}
		test.heard(scene{h, s, second, id})
		h.run(expirePauseMS - 1)
		h.now.Mono++ // the next end is due
		h.now.Wall++
		h.release()
		h.run(4000)
		if !first.closed {
			t.Errorf("%s: the first session did not end", name)
		}
		if _, lives := s[0].r.tree.Session(second.session); !lives {
			t.Errorf("%s: the second session ended", name)
		}
		if h.run(5000); s[0].r.isOpen(second.session) {
			t.Errorf("%s: the second session does not end", name)
		}
	}
}
