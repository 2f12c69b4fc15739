package claim

import (
	"slices"

	"bellwether/wire"
)

// Link is one step of a deadlock: a session that holds one znode, and waits
// with another for the next link's.
type Link struct {
	Session     wire.SessionID
	Holds, Wait Stand
}

// Deadlocks are the circles of sessions each of which holds, or stands
// before others, where the one before it waits, and so waits for itself.
// The tree does not tell whether it is one thread of a client that does both.
//
// Locks and semaphores alone: who stands in several elections leads some and
// waits in others, who waits in a group or a queue holds up nobody, and of a
// line whose naming nobody knows it is not known whether it is a lock.
func Deadlocks(scenes []Scene) [][]Link {
	stands := map[string]Stand{}
	waits := map[wire.SessionID][]Stand{}
	for _, s := range scenes {
		if s.Kind != KindLock && s.Kind != KindReadWriteLock && s.Kind != KindSemaphore {
			continue
		}
		for _, st := range s.Stands {
			stands[st.Path] = st
			if len(st.Behind) > 0 && st.Naming != Foreign {
				waits[st.Session] = append(waits[st.Session], st)
			}
		}
	}
	d := deadlocks{stands, waits}
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

// deadlocks is who waits for what.
type deadlocks struct {
	stands map[string]Stand
	waits  map[wire.SessionID][]Stand
}

// free takes out, again and again, the sessions whose turn can come.
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

// stuck reports whether what a stand waits for cannot go.
func (d deadlocks) stuck(s Stand) bool {
	blocked := func(p string) bool {
		t := d.stands[p]
		return t.Session != s.Session && d.waits[t.Session] != nil
	}
	if s.AnyOf {
		return !slices.ContainsFunc(s.Behind, func(p string) bool { return !blocked(p) })
	}
	return slices.ContainsFunc(s.Behind, blocked)
}

// circle follows those who are stuck until one comes up again.
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
				way[0].Holds = d.stands[d.next(way[len(way)-1].Wait)]
				return way
			}
			i := slices.IndexFunc(d.waits[at], d.stuck)
			if i < 0 {
				break
			}
			l := Link{Session: at, Wait: d.waits[at][i]}
			if len(way) > 0 {
				l.Holds = d.stands[d.next(way[len(way)-1].Wait)]
			}
			way = append(way, l)
			at = d.stands[d.next(l.Wait)].Session
		}
	}
	return nil
}

// next is what a stuck stand waits for, of another stuck session: the first
// in line.
func (d deadlocks) next(s Stand) string {
	i := slices.IndexFunc(s.Behind, func(p string) bool {
		t := d.stands[p]
		return t.Session != s.Session && d.waits[t.Session] != nil
	})
	if i < 0 {
		return ""
	}
	return s.Behind[i]
}
