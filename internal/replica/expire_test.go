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

// TestNextTurnWaitsForTheDisk: no more sessions end before the ends of the first ones are applied, but a slow disk does not delay
// them for long. A session whose client is heard from meanwhile does not end.
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
	if !r.expiry.Touch(4, r.now.Mono) {
		t.Fatal("session 4 is not known any more")
	}
	r.Step(r.now, Synced{Zxid: 7, Generation: r.alone.generation})
	r.Next()
	var ended []wire.SessionID
	for r.Unsettled() {
		for _, x := range r.logged() {
			ended = append(ended, x.Session)
		}
	}
	if len(ended) != 2 || ended[0] != 3 || ended[1] != 5 {
		t.Errorf("then %v end, want 3 and 5: session 4 was heard from before its end was proposed", ended)
	}
}

// TestLateTickStopsTheTurns: when the process has not run for a while, the sessions that are still to expire get one more tick, too.
func TestLateTickStopsTheTurns(t *testing.T) {
	r := expiring(3, 1)
	r.logged()
	r.Step(Time{Mono: 9000, Wall: 9000}, Tick{})
	if r.Unsettled() || len(r.Ready().Duties) > 0 {
		t.Error("a session expires in the tick after a pause")
	}
	for _, mono := range []int64{9500, 10_000} {
		r.Step(Time{Mono: mono, Wall: mono}, Tick{})
	}
	if !r.Unsettled() {
		t.Error("no session expires after that")
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
