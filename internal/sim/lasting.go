package sim

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// Lasting is a fault that a minority of the voters keeps when all other faults have ended.
// The other servers must serve in spite of it.
type Lasting string

// The lasting faults.
const (
	NoLasting Lasting = "none"
	Dead      Lasting = "dead"     // the process has ended
	Paused    Lasting = "paused"   // the process is stopped, and its connections stay
	Isolated  Lasting = "isolated" // no packet passes to or from another server
	Deaf      Lasting = "deaf"     // no packet of another server arrives
	Mute      Lasting = "mute"     // no packet to another server arrives
	Sluggish  Lasting = "sluggish" // each packet to another server takes longer, and so does each action of the disk
	Hung      Lasting = "hung"     // the disk answers nothing
	Full      Lasting = "full"     // the disk has no room
	Filtered  Lasting = "filtered" // no packet passes to or from the port for learners
)

// lastings are all lasting faults.
var lastings = []Lasting{Dead, Paused, Isolated, Deaf, Mute, Sluggish, Hung, Full, Filtered}

// lastingOf are the situations that say that servers have served in spite of a lasting fault.
var lastingOf = map[Lasting]situation{
	Dead: situationLastingDead, Paused: situationLastingPaused, Isolated: situationLastingIsolated, Deaf: situationLastingDeaf, Mute: situationLastingMute,
	Sluggish: situationLastingSluggish, Hung: situationLastingHung, Full: situationLastingFull, Filtered: situationLastingFiltered,
}

// steadyTime is how long the other servers must keep their leader once they serve.
const steadyTime = 10 * machine.Second

// drawLasting draws Options.Lasting from the seed, unless it is set. It uses a random source
// of its own, so that other draws do not change.
func (o *Options) drawLasting() {
	d := machine.NewRandom(o.Seed ^ 0x1a57)
	yes, drawn := d.Chance(40), lastings[d.Below(int64(len(lastings)))]
	if o.Lasting == "" {
		o.Lasting = NoLasting
		if yes {
			o.Lasting = drawn
		}
	}
}

// endure gives a minority of the voters a lasting fault and checks that the others serve in
// spite of it: they have one leader within twice the bound of a recovery, each client writes
// once more, and then the leader does not change for steady µs. The caller has ended all
// other faults, and ends this one. endure returns how long the fault lasted, in µs.
func (s *Sim) endure(steady int64) (lasted int64) {
	if s.opt.Lasting == NoLasting || s.opt.Lasting == Filtered && s.electsFiltered() {
		return 0
	}
	began := s.now
	if s.sick = s.minority(); len(s.sick) == 0 {
		return 0
	}
	for _, v := range s.sick {
		s.sicken(v)
	}
	fault := fmt.Sprintf("although %s %s", names(s.sick), s.opt.Lasting)
	s.await("the healthy servers have one leader and serve, "+fault, 2*s.recoverWithin(), s.healthyServe)
	last := map[*client.Client]*client.Call{}
	// A client tries the servers in any order, waits for each deaf one, and may have to connect twice if its session has expired.
	s.await("every client has written through a healthy server, "+fault, 4*s.recoverWithin(), func() string {
		if s.needsSick() {
			return ""
		}
		return s.lastWrites(last)
	})
	if s.needsSick() {
		s.sick = nil
		return s.now - began
	}
	s.idle = true
	s.steady(steady, fault)
	if s.over {
		return 0
	}
	s.reach(lastingOf[s.opt.Lasting])
	s.idle, s.sick = false, nil
	return s.now - began
}

// needsSick reports whether a membership that was proposed in the meantime cannot be committed without a sick server. Nothing
// is committed until it returns, as with ZooKeeper. An observer that the membership gives a vote acknowledges no proposal before.
func (s *Sim) needsSick() bool {
	return slices.ContainsFunc(s.servers, func(v *server) bool {
		if !v.leads() {
			return false
		}
		now := v.replica.Memberships()
		return now.Proposed != nil && !check.HasQuorum(now.Proposed, func(id ensemble.ServerID) bool {
			return !slices.Contains(s.sick, s.server(id)) && now.Committed.IsVoter(id)
		})
	})
}

// electsFiltered reports whether a filtered candidate may be elected again and again: by ZooKeeper's servers, and by
// Bellwether's whenever an epoch ends because its counter is used up.
func (s *Sim) electsFiltered() bool { return s.opt.Compatible > 0 || s.shortEpochs() }

// shortEpochs reports whether epochs end because their counters are used up.
func (s *Sim) shortEpochs() bool { return s.opt.CounterMax > 0 && s.opt.CounterMax < counterAmple }

// minority draws voters without which the others are a quorum that knows its history.
func (s *Sim) minority() (drawn []*server) {
	for _, i := range s.random.Shuffled(len(s.servers)) {
		v := s.servers[i]
		with := append(slices.Clone(drawn), v)
		if v.absent || !s.roster.newest.IsVoter(v.id) || !check.HasQuorum(s.roster.newest, func(id ensemble.ServerID) bool {
			o := s.server(id)
			return !slices.Contains(with, o) && o.has && !o.unknown && !o.rotten && !o.forgetful
		}) {
			continue
		}
		if drawn = with; s.random.Chance(60) {
			break
		}
	}
	return drawn
}

// sicken gives a server the lasting fault. These faults are not recorded among those of the
// nemesis, because a repeated run draws them again.
func (s *Sim) sicken(v *server) {
	s.tell("lasting fault: server %d is %s", v.id, s.opt.Lasting)
	switch s.opt.Lasting {
	case Dead:
		v.kill()
	case Paused:
		v.pause()
	case Hung:
		v.hangDisk()
	case Full:
		v.space = 0
		v.restore()
		v.push(replica.NoRoom{}) // as the log writer of a server tells its loop, also when it has nothing to write
	case Filtered:
		s.net.filter(&v.Host, filterIn+filterOut)
	case Sluggish:
		v.slowDisk = s.random.Below(400 * machine.Millisecond)
	}
	late := s.random.Below(150 * machine.Millisecond)
	for _, o := range s.servers {
		if o == v {
			continue
		}
		switch s.opt.Lasting {
		case Isolated:
			s.net.block(&v.Host, &o.Host)
			s.net.block(&o.Host, &v.Host)
		case Deaf:
			s.net.block(&o.Host, &v.Host)
		case Mute:
			s.net.block(&v.Host, &o.Host)
		case Sluggish:
			s.net.lag[[2]int{v.Place, o.Place}] = late
		}
	}
}

// healthy reports whether a server has no lasting fault and belongs to the ensemble.
func (s *Sim) healthy(v *server) bool { return !v.absent && !slices.Contains(s.sick, v) }

// healthyServe says what is missing until every healthy server serves in the epoch of the latest
// leader. That leader may be a sluggish server, but no server with another lasting fault.
func (s *Sim) healthyServe() string {
	l := s.leader()
	if l == nil || !s.healthy(l) && s.opt.Lasting != Sluggish {
		return "no healthy server leads"
	}
	var missing []string
	for _, v := range s.servers {
		if s.healthy(v) && !(v.up && v.standing.Serving && v.standing.Epoch == l.standing.Epoch) {
			missing = append(missing, fmt.Sprintf("server %d does not serve in epoch %d", v.id, l.standing.Epoch))
		}
	}
	return strings.Join(missing, ", ")
}

// steady checks that the healthy servers keep their leader for some time, in µs. The leader
// may change if epochs end because their counters are used up, if batches take longer
// than syncLimit, or once for each higher priority. It may also change until its epoch is as late
// as those that servers had promised before: it ends its term to let such a server join.
func (s *Sim) steady(time int64, fault string) {
	if s.ended() || s.shortEpochs() || s.opt.Busy > 0 {
		return
	}
	before, l := s.unpreferred(), s.leader()
	late := 0 // how many terms may end for a promise
	for _, v := range s.servers {
		if l != nil && !v.absent && v.saved.Accepted > l.standing.Epoch {
			late = max(late, int(v.saved.Accepted-l.standing.Epoch))
		}
	}
	for until := s.now + time; s.now < until && s.step(); {
	}
	if n := s.unpreferred() - before; n > late {
		s.fail("Steadiness", "%d leaders were established after server %d served, %s", n, idOf(l), fault)
	}
}

// counterAmple is a last counter of an epoch that no run uses up.
const counterAmple = 1 << 30

// idOf returns the id of a server, or that of no server for nil.
func idOf(v *server) ensemble.ServerID {
	if v == nil {
		return peerwire.NoServer
	}
	return v.id
}

// names lists servers for messages, with the verb that follows them.
func names(servers []*server) string {
	texts := make([]string, len(servers))
	for i, v := range servers {
		texts[i] = fmt.Sprint(v.id)
	}
	if len(texts) == 1 {
		return "server " + texts[0] + " is"
	}
	return "servers " + strings.Join(texts, " and ") + " are"
}
