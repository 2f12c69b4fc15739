package sim

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim/check"
	"bellwether/internal/store"
	"bellwether/wire"
)

// This file is about disks that lose what they have promised: a disk that lies about its
// fsyncs, and a disk that is replaced although the others cannot do without it.
//
// Such a server falls back to an earlier state, and the other servers rely on the later
// one. Every promise holds as long as each quorum of voters contains a server that still
// has what was committed, and a server that still knows the epoch of each leader that a
// quorum has promised to follow. While some quorum does not, no protocol can promise that
// nothing acknowledged is lost: that quorum may elect a leader without it. Sim.suspended
// says so, and see then accepts that one of the rules in lossRules is broken. The run ends
// there, because all rules compare with the history that was lost, and the result says why
// it ended. All other rules hold in any case.
//
// These conditions are weighed only while a server lacks something that its disk had
// promised, and then until they hold. A server that has forgotten the epoch of a later leader
// may help an earlier one to commit transactions, which the servers of the later epoch lack:
// they outvote it even after it has regained everything. In a run without such servers the
// conditions hold by the protocol, so that nothing is ever suspended in it.

// A disk may also lie about some files only: logs, snapshots or epoch files. A power failure
// then loses a part of what was promised, such as some sectors in the middle of a log. The
// server falls back to an earlier state, or finds that the files contradict each other and
// refuses to start. Then an operator replaces the disk, although the others may need it.

// The files about which a disk lies, as the amount of an act: a sum of these, or 0 for all.
const lieLogs, lieSnapshots, lieEpochs = 1, 2, 4

// liedFiles are the beginnings of the names of these files.
var liedFiles = map[int64][]string{lieLogs: {"log."}, lieSnapshots: {"snapshot."}, lieEpochs: {"currentEpoch", "acceptedEpoch"}}

// lie makes the disk lie about files.
func (v *server) lie(files int64) {
	if v.liesPartly = files != 0; !v.liesPartly {
		v.fs.Lie()
		return
	}
	v.fs.LieAbout(func(path string) bool {
		for bit, names := range liedFiles {
			is := func(name string) bool { return strings.HasPrefix(filepath.Base(path), name) }
			if files&bit != 0 && slices.ContainsFunc(names, is) {
				return true
			}
		}
		return false
	})
}

func (v *server) endLie() {
	v.fs.EndLie()
	v.liesPartly = false
}

// refusesLoss reports whether a start failed because the disk has lost a part of what it had
// promised. If so, the disk is replaced.
func (v *server) refusesLoss(err error) bool {
	var damage *store.DamageError
	if !v.lied || !errors.As(err, &damage) {
		return false
	}
	v.sim.tell("server %d refuses to start: %v", v.id, err)
	v.sim.reach(situationLossRefused)
	v.loseDisk()
	return true
}

// promise is what the disk of a server has reported as durable.
type promise struct {
	zxid              wire.Zxid
	accepted, current wire.Epoch
}

// loss is a part of a log that was reported as durable and is gone: what comes after from,
// up to to.
type loss struct{ from, to wire.Zxid }

// lossRules are the rules that fail at the first moment at which acknowledged history is
// missing, or at which an epoch has two leaders.
var lossRules = []string{"Leadership", "LeadershipTransfers", "PrefixConsistency", "Agreement", "Integrity", "PrimaryIntegrity", "NothingUndone", "Memberships"}

// possibleRule is the rule that asks whether something can be lost, not whether it is. So
// nobody can ask it while promises are suspended.
const possibleRule = "PossibleLeaders"

// durable returns where the history on a server's disk ends, as far as the disk says.
func (v *server) durable() wire.Zxid {
	if v.store == nil || v.blank {
		return 0
	}
	return max(0, v.store.Synced())
}

// noteClaims keeps what a lying disk has promised until the power fails.
func (v *server) noteClaims() {
	if !v.fs.Lies() || v.store == nil {
		return
	}
	v.lied, v.unbroken = true, nowhere
	v.claims = promise{v.durable(), max(v.claims.accepted, v.saved.Accepted), v.saved.Current}
}

// noteFallback compares what a disk that has lied still has with what it had promised.
func (v *server) noteFallback(has promise) {
	if !v.lied {
		return
	}
	v.lied = false
	if c := v.claims; has.zxid < c.zxid || has.accepted < c.accepted || has.current < c.current {
		v.sim.reach(situationLied)
		v.forgot(has.zxid)
	}
}

// forgot records that a server has fallen back to an earlier state, which ends at zxid.
func (v *server) forgot(zxid wire.Zxid) {
	s, c := v.sim, v.claims
	v.forgetful = true
	s.see(check.Forgot{Server: v.id})
	s.losses = append(s.losses, loss{zxid, c.zxid})
	s.tell("server %d has lost what its disk had promised: its history ends at %v, not at %v, and it had promised epoch %d", v.id, zxid, c.zxid, c.accepted)
	s.weigh()
}

// remembers records that a server serves. It is no longer forgetful if it has followed an
// established leader since, and knows the last epoch again that it had promised.
func (v *server) remembers() {
	if !v.forgetful || v.saved.Accepted < v.claims.accepted {
		return
	}
	v.forgetful, v.claims = false, promise{}
	v.sim.reach(situationRegained)
	v.sim.weigh()
}

// accepts records that a server has durably promised to follow the leader of an epoch.
func (v *server) accepts(e wire.Epoch) {
	v.saved.Accepted = max(v.saved.Accepted, e)
	v.sim.promised[e] |= 1 << v.id
	v.sim.weigh()
}

// weigh decides whether promises are suspended now.
func (s *Sim) weigh() {
	if len(s.losses) == 0 {
		return
	}
	before := s.suspended
	s.suspended = ""
	if before != "" || slices.ContainsFunc(s.servers, func(v *server) bool { return v.forgetful }) {
		s.suspended = s.missing()
	}
	switch {
	case s.suspended == before:
	case s.suspended == "":
		s.tell("all promises hold again")
	default:
		s.reach(situationSuspended)
		s.tell("promises are suspended: %s", s.suspended)
		s.notes = append(s.notes, fmt.Sprintf("from second %.3f on, acknowledged writes may be lost, because %s", float64(s.now)/1e6, s.suspended))
	}
}

// missing says what a quorum could do without knowing what was promised before; empty:
// nothing.
func (s *Sim) missing() string {
	last := s.history.Last().Zxid
	lost := s.canElect(func(v *server) bool { return v.durable() < last || v.saved.Current < last.Epoch() }) // a vote gives the epoch before the zxid
	if s.founds() {
		lost = last > 0
	}
	if s.canElect(func(v *server) bool { return v.saved.Current < s.ledEpoch }) {
		s.outvotable = s.ledEpoch
	}
	twice := wire.Epoch(0)
	for e, mask := range s.promised {
		if e > 0 && s.isQuorum(func(v *server) bool { return mask&(1<<v.id) != 0 }) &&
			s.canDecide(func(v *server) bool { return v.blank || v.saved.Accepted < e }) {
			twice = max(twice, e)
			s.repeatable[e] = true
		}
	}
	if lost {
		return fmt.Sprintf("a quorum of voters can elect a leader without %v, which is committed", last)
	}
	if twice > 0 {
		return fmt.Sprintf("a quorum of voters can elect another leader of epoch %d, which a quorum has promised to follow", twice)
	}
	return ""
}

// canElect reports whether a quorum can elect a server of a kind. A server without history is elected only by others without
// history. A server with history votes for no vote below its own.
func (s *Sim) canElect(are func(v *server) bool) bool {
	return s.canDecide(are) || slices.ContainsFunc(s.servers, func(v *server) bool {
		return v.knows() && are(v) && s.isQuorum(func(o *server) bool { return o == v || o.knows() && o.outvotedBy(v) })
	})
}

// outvotedBy reports whether the vote of another server with history is as good as that of this one.
func (v *server) outvotedBy(o *server) bool {
	return v.saved.Current < o.saved.Current || v.saved.Current == o.saved.Current && v.durable() <= o.durable()
}

// canDecide reports whether servers of a kind can elect a leader alone. A server without
// history does not vote once it hears a voter with history, so a quorum consists of servers
// with history or of servers without, unless they found the ensemble.
func (s *Sim) canDecide(are func(v *server) bool) bool {
	return s.isQuorum(func(v *server) bool { return are(v) && v.knows() }) ||
		s.isQuorum(func(v *server) bool { return are(v) && (!v.knows() && !v.unknown || s.founds()) })
}

// founds reports whether no voter has a transaction. Then all voters vote once all of them hear each other, as at the
// first start.
func (s *Sim) founds() bool {
	return !slices.ContainsFunc(s.servers, func(v *server) bool {
		return v.durable() > 0 && v.members != nil && v.members.IsVoter(v.id)
	})
}

// knows reports whether a server has a history that it votes with.
func (v *server) knows() bool { return !v.blank && v.saved.Current > 0 }

// isQuorum reports whether servers of a kind are a quorum by the list of one of them.
func (s *Sim) isQuorum(are func(v *server) bool) bool {
	has := func(id ensemble.ServerID) bool { v := s.server(id); return v != nil && are(v) }
	return slices.ContainsFunc(s.servers, func(v *server) bool {
		return !v.absent && v.members != nil && v.members.IsVoter(v.id) && are(v) && v.members.HasQuorum(has)
	})
}

// noteFork records that a server applies a transaction that is not in the history, although
// the history goes on. Only servers that have acknowledged the transaction and lost it
// explain that.
func (s *Sim) noteFork(z wire.Zxid) {
	if slices.ContainsFunc(s.losses, func(l loss) bool { return l.from < z && z <= l.to }) {
		s.suspended = fmt.Sprintf("a server has acknowledged %v and lost it", z)
	}
}

// noteLostMemberships records that the history lacks a membership which a server has acknowledged and lost. The start of a term
// commits a membership, and the term may end before any tree has it.
func (s *Sim) noteLostMemberships() {
	for _, v := range s.servers {
		if v.members == nil {
			continue
		}
		z := wire.Zxid(v.members.Version())
		if _, known := s.history.Index[z]; !known {
			s.noteFork(z)
		}
	}
}

// excuses reports whether a rule that an observation breaks only shows what disks have
// lost. If so, the run is over. While a server has a hole in its history, each rule may be
// broken. An epoch of which a second leader could be elected stays such an epoch after the
// servers have promised it again, because they may have promised it to the second leader.
// A quorum that has forgotten the leader of an epoch may elect a server of an earlier one. If the
// forgotten leader had committed nothing, nothing is lost, but the other leader commits what was proposed before it.
func (s *Sim) excuses(o any, rule, wrong string) bool {
	if s.jumpedAt > 0 && slices.Contains(timeRules, rule) {
		s.endEarly("the clock of a leader has jumped, so that sessions may end too early: " + wrong)
		return true
	}
	if v := s.holed(); v != nil {
		s.endEarly(v.hole + ": " + wrong)
		return true
	}
	if c, ok := o.(check.Committed); ok && rule == "PrimaryIntegrity" && c.Txn.Zxid.Epoch() < s.outvotable {
		s.endEarly(fmt.Sprintf("a quorum of voters had forgotten the leader of epoch %d: %s", s.outvotable, wrong))
		return true
	}
	if rule == "Memberships" {
		s.noteLostMemberships()
	}
	switch {
	case !slices.Contains(lossRules, rule):
		return false
	case s.suspended != "":
	case s.repeatable[leadsIn(o)]:
		s.suspended = fmt.Sprintf("a quorum of voters had forgotten epoch %d", leadsIn(o))
	default:
		return false
	}
	s.reach(situationAckedLost)
	s.endEarly(fmt.Sprintf("acknowledged writes are lost, which is possible if %s: %s", s.suspended, wrong))
	return true
}

// leadsIn returns the epoch of the leader that an observation is about; 0: it is about none.
func leadsIn(o any) wire.Epoch {
	switch e := o.(type) {
	case check.Established:
		return e.Epoch
	case check.Promised:
		if !e.ByLearner {
			return e.Packet.Zxid.Epoch()
		}
	}
	return 0
}

// endEarly ends a run, which has not failed.
func (s *Sim) endEarly(why string) {
	s.over = true
	s.tell("the run is over: %s", why)
	s.notes = append(s.notes, fmt.Sprintf("the run ended at second %.3f, because %s", float64(s.now)/1e6, why))
}

// ended reports whether nothing happens any more.
func (s *Sim) ended() bool { return s.failed != nil || s.over }

// promiseOf returns what a server has loaded.
func promiseOf(log wire.Zxid, e store.Epochs) promise { return promise{log, e.Accepted, e.Current} }
