package zab

import (
	"fmt"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Fitness (learner) says why this server should not lead; empty if it may. The leader is told, so
// that it transfers leadership to other servers. Votes know nothing of it. A learner of a
// ZooKeeper leader, or of an older native one, ignores the event.
type Fitness struct{ Why string }

func (Fitness) event() {}

// tellFitness tells the leader whether this server may lead.
func (r *Learner) tellFitness(e Fitness) {
	if r.step != following || r.extension < peerwire.ExtensionFitness {
		return
	}
	why := strings.ToValidUTF8(e.Why[:min(len(e.Why), peerwire.FitnessMax)], "")
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketFitness, Data: wire.Append(nil, &peerwire.Fitness{Why: why})})
}

// fitness notes whether a learner says that it may lead.
func (l *Leader) fitness(k *link, p *peerwire.QuorumPacket) string {
	var f peerwire.Fitness
	if err := wire.Decode(p.Data, &f); err != nil {
		return "sent a fitness that cannot be read: " + err.Error()
	}
	before := l.whyUnfit(k)
	k.unfit = f.Why
	if why := l.whyUnfit(k); why != before {
		l.report(LearnerFitness{k.name(), why})
	}
	return ""
}

// whyUnfit says why a learner should not lead; empty if it may. A learner whose tree differs from this
// leader's should not, unless the leader's tree is the wrong one.
func (l *Leader) whyUnfit(k *link) string {
	switch t := &k.tree.report; {
	case k.unfit != "":
		return k.unfit
	case t.Wrong:
		return "a quorum has found its tree wrong"
	case t.Differs != 0 && !l.trees.own.report.Wrong:
		return fmt.Sprintf("its tree differs from the leader's since %v", t.Differs)
	}
	return ""
}

// Unfit names the learners that say that they should not lead, and why; empty if none does.
func (l *Leader) Unfit() string {
	var all []string
	for _, k := range l.order {
		if why := l.whyUnfit(k); why != "" {
			all = append(all, fmt.Sprintf("server %d: %s", k.server, why))
		}
	}
	return strings.Join(all, "; ")
}

// LearnerFitness reports that a learner says why it should not lead, or, with an empty Why, that
// it may lead again.
type LearnerFitness struct{ Learner, Why string }

func (h LearnerFitness) String() string {
	if h.Why == "" {
		return h.Learner + " may lead again"
	}
	return fmt.Sprintf("%s should not lead: %s", h.Learner, h.Why)
}

// checkFit notes since when each learner could lead next. It is called at each heartbeat, so
// that a short silence or a late ACK interrupts that time.
func (l *Leader) checkFit() {
	if l.phase != serving {
		return
	}
	for _, k := range l.order {
		switch {
		case k.state != linkServing || l.whyUnfit(k) != "" || l.whyNotSuccessor(k.server) != "":
			k.fitSince = Never
		case k.fitSince == Never:
			k.fitSince = l.now
		}
	}
}

// FitMS returns for how long a server has been able to lead next, without interruption: it
// is a native voter that does not say that it should not lead, has been heard from within the
// lease, and has acknowledged each proposal in time. It returns 0 if the server cannot lead next.
func (l *Leader) FitMS(id ensemble.ServerID) int64 {
	k := l.linkOf(id)
	if k == nil || k.fitSince == Never {
		return 0
	}
	return l.now - k.fitSince
}

// Writes reports whether a server has acknowledged a proposal within the last tick. That is the
// only proof that its disk works: as long as nothing is proposed, a hung disk is noticed
// nowhere.
func (l *Leader) Writes(id ensemble.ServerID) bool {
	k := l.linkOf(id)
	return k != nil && k.ackedAt != Never && l.now-k.ackedAt <= l.opt.TickMS
}
