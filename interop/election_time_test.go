package interop

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
)

// jump is how far clocks are moved: much longer than any session timeout.
const jump = time.Hour

// TestElectionCandidatesClocksJump moves the wall clocks of candidates forwards, while they
// run and while they are stopped, and backwards. Two handles must never be unexpired at the
// same time, tokens must grow, no guarded write of an older handle may succeed, and exactly
// one candidate must lead after each jump.
//
// Each candidate is a process of its own, and only its wall clock jumps; see
// [target.WallClock]. A process sees the same when a machine is suspended: its monotonic
// clock has stood still, and its wall clock has not. The monotonic clock itself never jumps
// on any system, so the test does not move it.
func TestElectionCandidatesClocksJump(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		j := newJumps(t, kind, 3)

		t.Log("the leader's machine is suspended: its term is over when it continues, although its session lives")
		first := j.leads(t, 0)
		leader := j.term(first).of
		signal(t, leader.remote, syscall.SIGSTOP)
		j.mustEndNow(t, first, func() {
			leader.clock.Jump(t, jump)
			signal(t, leader.remote, syscall.SIGCONT)
		})

		t.Log("the leader's clock is set forwards while it runs")
		second := j.leads(t, first)
		j.mustEndNow(t, second, func() { j.term(second).of.clock.Jump(t, jump) })

		t.Log("the leader's clock is set backwards: answered pings still prove its session")
		third := j.leads(t, second)
		leader = j.term(third).of
		leader.clock.Jump(t, -2*jump)
		j.goesOn(t, third, jumpTimeout)

		t.Log("the leader is stopped and sends no pings: its term ends by the monotonic clock, before another candidate leads")
		signal(t, leader.remote, syscall.SIGSTOP)
		fourth := j.leads(t, third)
		signal(t, leader.remote, syscall.SIGCONT)
		j.await(t, "the third term is over", func() bool { return j.term(third).over != "" })

		t.Log("all clocks are set forwards")
		j.mustEndNow(t, fourth, func() {
			for _, k := range j.all {
				k.clock.Jump(t, jump)
			}
		})
		fifth := j.leads(t, fourth)

		t.Log("all clocks are set backwards")
		for _, k := range j.all {
			k.clock.Jump(t, -3*jump)
		}
		j.goesOn(t, fifth, 0)
		j.finish(t)
	})
}

// TestElectionServersClockJumps moves the server's wall clock forwards and backwards while it
// runs. Sessions end by its monotonic clock, so the leader stays, and a killed leader is
// followed by another one. The times of the znodes show that the clock has jumped.
func TestElectionServersClockJumps(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		j := newJumps(t, kind, 2)
		clock := target.WallClockOf(t, j.s.PID())
		first := j.leads(t, 0)
		for _, by := range []time.Duration{jump, -2 * jump} {
			before := j.serverTime(t)
			clock.Jump(t, by)
			if jumped := j.serverTime(t).Sub(before); jumped < by || jumped > by+electionWait {
				t.Fatalf("the server's clock was set by %v and shows %v", by, jumped)
			}
			j.goesOn(t, first, jumpTimeout)
		}
		killed := j.term(first).of
		killed.kill()
		clock.Jump(t, 2*jump)
		j.leads(t, first)
		j.all = slices.DeleteFunc(j.all, func(k *jumper) bool { return k == killed })
		j.finish(t)
	})
}

// leads waits until a later term has begun and its leader has written, and returns its token.
func (j *jumps) leads(t *testing.T, after wire.Zxid) (token wire.Zxid) {
	t.Helper()
	j.await(t, "one leads", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		for newer, sp := range j.spans {
			if newer > max(after, token) && sp.writes > 0 && sp.first > 0 {
				token = newer
			}
		}
		return token > after
	})
	return token
}

// mustEndNow calls do, after which the term must not be reported as unexpired. Reports that
// began earlier are allowed.
func (j *jumps) mustEndNow(t *testing.T, token wire.Zxid, do func()) {
	t.Helper()
	do()
	done := machineTime()
	j.await(t, "the term is over", func() bool { return j.term(token).over != "" })
	if last := j.term(token).last; last > done {
		t.Errorf("the handle of token %v is still unexpired %v after the jump", token, last-done)
	}
}

// goesOn waits until the term was reported as unexpired this much later than now, and has
// written.
func (j *jumps) goesOn(t *testing.T, token wire.Zxid, later time.Duration) {
	t.Helper()
	begin, writes := machineTime(), j.term(token).writes
	j.await(t, "the leader goes on", func() bool {
		sp := j.term(token)
		if sp.over != "" {
			t.Fatalf("token %v is over: %s", token, sp.over)
		}
		return sp.last > begin+later && sp.writes > writes
	})
}

// serverTime returns the server's wall clock.
func (j *jumps) serverTime(t *testing.T) time.Time {
	t.Helper()
	_, stat, err := j.watch.c.Create(t.Context(), fresh("now"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMilli(stat.Ctime)
}

// finish checks that exactly one candidate leads, ends all candidates, and checks the records
// of all terms.
func (j *jumps) finish(t *testing.T) {
	t.Helper()
	j.await(t, "exactly one leads, all stand", func() bool {
		bids, err := j.watch.e.Candidates(t.Context())
		leads := j.unexpired()
		return err == nil && len(bids) == len(j.all) && len(leads) == 1 && bids[0].Token == leads[0]
	})
	for _, k := range j.all {
		k.in.Close()
	}
	j.heard.Wait()
	if left, err := j.watch.e.Candidates(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left over: %+v, %v", left, err)
	}
	j.check(t)
}

// unexpired returns the terms that have not ended.
func (j *jumps) unexpired() []wire.Zxid {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, some := machineTime(), []wire.Zxid(nil)
	for token, sp := range j.spans {
		if sp.over == "" && sp.last > now-jumpTimeout { // a killed process cannot report its end
			some = append(some, token)
		}
	}
	return some
}

func (j *jumps) check(t *testing.T) {
	t.Helper()
	if j.failed != "" {
		t.Errorf("a candidate says %q", j.failed)
	}
	maps.DeleteFunc(j.spans, func(_ wire.Zxid, sp *span) bool { return sp.first == 0 }) // the term had already ended at its first check
	tokens := slices.Sorted(maps.Keys(j.spans))
	for i := 1; i < len(tokens); i++ {
		if a, b := j.spans[tokens[i-1]], j.spans[tokens[i]]; a.last >= b.first {
			t.Errorf("handle %v is unexpired %v after %v was", tokens[i-1], a.last-b.first, tokens[i])
		}
	}
	slices.SortFunc(j.writes, func(a, b write) int { return int(min(max(a.at-b.at, -1), 1)) })
	for i := 1; i < len(j.writes); i++ {
		if j.writes[i].token < j.writes[i-1].token {
			t.Errorf("a write of token %v follows one of %v", j.writes[i].token, j.writes[i-1].token)
		}
	}
	t.Log(len(tokens), "terms,", len(j.writes), "guarded writes")
}
