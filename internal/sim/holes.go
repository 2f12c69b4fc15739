package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// This file is about losses that no file shows. A server gets a snapshot from a leader at the
// beginning of an epoch, and its log continues with the first transaction of that epoch. If the
// disk then loses the snapshot, an older one is followed by that log, as if the epochs between
// them had had no transactions: the server starts with a hole in its history. The digests of the
// transactions show that its tree is not that of their leader, but not which tree is wrong. So
// the server starts, and what its clients read from it is not promised. The next transaction
// shows the difference again, the server raises an alarm, and its leader compares the trees and
// sends a snapshot. If the server leads before that, nothing is promised.

// findHole looks for a hole in the history that a server has loaded: the snapshot of zxid base
// and the transactions txns.
func (v *server) findHole(base wire.Zxid, txns []*record.Txn) {
	if !v.lied || v.hole != "" || len(txns) == 0 {
		return
	}
	loaded := map[wire.Zxid]bool{}
	for _, t := range txns {
		loaded[t.Zxid] = true
	}
	last := txns[len(txns)-1].Zxid
	lacks := func(e check.Entry) bool { return base < e.Zxid && e.Zxid < last && !loaded[e.Zxid] }
	if i := slices.IndexFunc(v.sim.history.Entries, lacks); i >= 0 {
		v.hole = fmt.Sprintf("the disk of server %d has lost %v and perhaps more, but not what follows, and no file shows that", v.id, v.sim.history.Entries[i].Zxid)
		v.sim.reach(situationHole)
		v.sim.tell("%s", v.hole)
		v.sim.notes = append(v.sim.notes, fmt.Sprintf("at second %.3f, %s", float64(v.sim.now)/1e6, v.hole))
	}
}

// holeFilled records that a snapshot of a leader has replaced the tree.
func (v *server) holeFilled() {
	if v.hole != "" && !v.sim.copiesSpoilt {
		v.hole = ""
		v.sim.reach(situationHoleFilled)
		v.sim.tell("server %d has no hole in its history any more", v.id)
	}
}

// holed returns a server with a hole in its history; nil: there is none.
func (s *Sim) holed() *server {
	if i := slices.IndexFunc(s.servers, func(v *server) bool { return v.hole != "" }); i >= 0 {
		return s.servers[i]
	}
	return nil
}

// leadsWithHole ends a run in which a server with a hole begins to lead.
func (v *server) leadsWithHole() {
	if v.hole != "" && v.standing.Role == peerwire.Leading {
		v.sim.endEarly("that server leads, although " + v.hole)
	}
}

// holesNoticed says which trees differ although no alarm says so.
func (s *Sim) holesNoticed() (missing string) {
	for _, v := range s.servers {
		if v.hole == "" || !v.up || v.standing.Differs != "" {
			continue
		}
		z, digest := v.tree.Digest()
		if i, known := s.history.Place(z); !known || s.history.Entries[i].Digest != digest {
			missing += fmt.Sprintf(" server %d raises no alarm, although %s", v.id, v.hole)
		}
	}
	return missing
}
