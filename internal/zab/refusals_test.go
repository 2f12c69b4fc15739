package zab

import (
	"strings"
	"testing"

	"bellwether/internal/peerwire"
)

// TestUnreadableConfigurationEndsTheTerm: a learner gives up a leader whose configuration it cannot read, and
// says so. It would otherwise wait for a leader that it does not follow.
func TestUnreadableConfigurationEndsTheTerm(t *testing.T) {
	r := soloLearner(t, "1.5", "", false)
	r.opt.Reconfig = true
	p := pack(peerwire.PacketNewLeader, "2.0", nil)
	p.Data = []byte("server.x=nonsense")
	take(r, pack(peerwire.PacketDiff, "1.5", nil), p)
	if out := r.Ready(); !strings.Contains(out.GiveUp, "cannot be read") {
		t.Errorf("gives up %q", out.GiveUp)
	}
}

// TestNothingIsCarriedBeforeALearnerServes: only a learner that serves carries messages of clients. Everything else
// is an error of the program, which must not pass unnoticed.
func TestNothingIsCarriedBeforeALearnerServes(t *testing.T) {
	for what, e := range map[string]Event{"a revalidation": Revalidate{}, "a request": Forward{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is carried", what)
				}
			}()
			soloLearner(t, "1.5", "", false).Step(0, e)
		}()
	}
}

// TestUnreadableAnswerToAPing: a leader ends the link of a learner whose answer to a ping cannot be read, and does not count
// the answer.
func TestUnreadableAnswerToAPing(t *testing.T) {
	l := establishedLeader(t, 3, 2, configuration(zx("1.0"), "1 2 3"), logOf(t, "1.1", ""))
	greet(l, 1, 1, "1.1", false)
	ack(l, "2.0", 1)
	l.Step(l.opt.TickMS, Tick{})
	l.Ready()
	before := l.links[1].reports
	if l.links[1].unanswered.Len() == 0 {
		t.Fatal("no ping was sent")
	}
	l.Step(l.now, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketPing, Data: []byte{1, 2, 3}}})
	if k := l.links[1]; k != nil && k.reports != before {
		t.Error("the answer counts")
	}
	if out := l.Ready(); len(out.Close) != 1 || out.Close[0] != 1 {
		t.Errorf("ends the links %v", out.Close)
	}
}

// TestNoReconfigurationIsOpenAfterItsCommit: once a proposed membership is the committed one, nothing of the proposal is left.
func TestNoReconfigurationIsOpenAfterItsCommit(t *testing.T) {
	c := commitment{committed: configuration(1, "1 2 3"), self: 3}
	c.follow(reconfiguration("2.1", "1 2 3 4"))
	next := c.lastSeen
	if c.activateMembership(); c.committed != next || c.lastSeen != nil || c.reconfig != 0 {
		t.Errorf("%v, %v, %v", c.committed, c.lastSeen, c.reconfig)
	}
}
