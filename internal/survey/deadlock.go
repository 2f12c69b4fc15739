package survey

import (
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Link is one step of a deadlock: a session holds one znode, and waits with another one for the znode that
// the next link holds.
type Link struct {
	Session     wire.SessionID
	Holds, Wait Participant
}

// Deadlocks returns the cycles of sessions in which each session waits for the next. A session blocks
// another one if it holds, or if it waits ahead of it in the same line. The tree does not show whether one
// thread of a client holds and waits, or two threads do.
//
// Only locks and semaphores count. A candidate in several elections normally leads some and waits in
// others. A client that waits in a group or a queue blocks no other client. A line with an unknown naming
// may not be a lock.
func Deadlocks(recipes []Recipe) [][]Link {
	participants := map[string]Participant{}
	waits := map[wire.SessionID][]Participant{}
	for _, s := range recipes {
		if s.Kind != claim.KindLock && s.Kind != claim.KindReadWriteLock && s.Kind != claim.KindSemaphore {
			continue
		}
		for _, st := range s.Participants {
			participants[st.Path] = st
			if len(st.Behind) > 0 && st.Naming != claim.Foreign {
				waits[st.Session] = append(waits[st.Session], st)
			}
		}
	}
	d := deadlocks{participants, waits}
	d.free()
	var out [][]Link
	for {
		circle := d.circle()
		if circle == nil {
			return out
		}
		out = append(out, circle)
		for _, l := range circle {
			delete(d.waits, l.Session)
		}
	}
}

// deadlocks holds the participants by path, and the waiting ones by session.
type deadlocks struct {
	participants map[string]Participant
	waits        map[wire.SessionID][]Participant
}

// free repeatedly removes the sessions that will get their turn.
func (d deadlocks) free() {
	for again := true; again; {
		again = false
		for session, all := range d.waits {
			if !slices.ContainsFunc(all, d.stuck) {
				delete(d.waits, session)
				again = true
			}
		}
	}
}

// stuck reports whether a participant waits for one that will never leave.
func (d deadlocks) stuck(s Participant) bool {
	blocked := func(p string) bool {
		t := d.participants[p]
		return t.Session != s.Session && d.waits[t.Session] != nil
	}
	if s.AnyOf {
		return !slices.ContainsFunc(s.Behind, func(p string) bool { return !blocked(p) })
	}
	return slices.ContainsFunc(s.Behind, blocked)
}

// circle follows the stuck sessions until it reaches one for the second time.
func (d deadlocks) circle() []Link {
	sessions := make([]wire.SessionID, 0, len(d.waits))
	for s := range d.waits {
		sessions = append(sessions, s)
	}
	slices.Sort(sessions)
	for _, at := range sessions {
		var way []Link
		for {
			if i := slices.IndexFunc(way, func(l Link) bool { return l.Session == at }); i >= 0 {
				way = way[i:]
				way[0].Holds = d.participants[d.next(way[len(way)-1].Wait)]
				return way
			}
			i := slices.IndexFunc(d.waits[at], d.stuck)
			if i < 0 {
				break
			}
			l := Link{Session: at, Wait: d.waits[at][i]}
			if len(way) > 0 {
				l.Holds = d.participants[d.next(way[len(way)-1].Wait)]
			}
			way = append(way, l)
			at = d.participants[d.next(l.Wait)].Session
		}
	}
	return nil
}

// next returns the first znode that a stuck participant waits for and that another stuck session owns.
func (d deadlocks) next(s Participant) string {
	i := slices.IndexFunc(s.Behind, func(p string) bool {
		t := d.participants[p]
		return t.Session != s.Session && d.waits[t.Session] != nil
	})
	if i < 0 {
		return ""
	}
	return s.Behind[i]
}
