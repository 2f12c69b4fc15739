package sim

import (
	"errors"

	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// snapshotting is a snapshot that is being written. It reads its parts one after the other
// while further transactions are applied.
type snapshotting struct {
	*tree.Snapshot
	sessions []tree.SessionTimeout
}

// beginSnapshot reads the sessions now, and the znodes some time later.
func (w *writer) beginSnapshot() {
	v := w.v
	s := &snapshotting{Snapshot: v.tree.Snapshot()}
	s.readSessions()
	w.snap = s
	v.later(v.sim.random.Between(machine.Millisecond, 100*machine.Millisecond), func() { v.whenDiskAnswers(func() { w.endSnapshot(s) }) })
}

func (s *snapshotting) readSessions() {
	_ = s.Snapshot.Sessions(func(id wire.SessionID, timeoutMS int32) error {
		s.sessions = append(s.sessions, tree.SessionTimeout{ID: id, TimeoutMS: timeoutMS})
		return nil
	})
}

// endSnapshot writes the file. It fails, without harm, if the tree contains transactions
// that are not durable on this server.
func (w *writer) endSnapshot(s *snapshotting) {
	if w.snap != s {
		return // the history was replaced in the meantime
	}
	w.snap = nil
	v := w.v
	_, err := v.store.WriteSnapshot(s.Zxid(), s)
	if err == nil {
		v.installed = v.installed && s.Zxid() < v.fuzzyTo
		v.trySnapshot(s.Zxid())
		_, err = v.store.Purge(3)
		if v.tree.LastZxid() > s.Zxid() {
			v.sim.reach(situationSnapshot)
		}
	}
	if errors.Is(err, store.ErrCrashed) {
		v.sim.tell("server %d loses power while it writes a snapshot", v.id)
		v.powerOff()
	}
}

// Sessions yields the sessions that existed when the snapshot began.
func (s *snapshotting) Sessions(yield func(id wire.SessionID, timeoutMS int32) error) error {
	for _, e := range s.sessions {
		if err := yield(e.ID, e.TimeoutMS); err != nil {
			return err
		}
	}
	return nil
}
