package lines

import (
	"slices"

	"bellwether/internal/claim"
)

// MultiLock takes several locks, and holds all of them or none. It takes them in the order of their paths,
// so that clients with overlapping sets of locks do not deadlock.
//
//	take the first ▸ taken: take the next ▸ … ▸ all taken: held
//	one is lost before that ▸ stop, give back the others in reverse order ▸ all gone: take the first
//	one cannot be taken     ▸ the same ▸ all gone: over
//	Resign                  ▸ the same ▸ over
//
// If one lock is lost while all are held, the multi-lock is no longer held, but MultiLock keeps the other
// locks. The caller must first stop its work, and then step Resign to give them back.
//
// MultiLock makes no requests. Everything that it needs is an operation of [claim.Ready].Start, and the
// driver steps the end of each operation as an event.
//
// taken holds the first len(taken) of paths. asked is empty unless a lock is being taken.
type MultiLock struct {
	paths   []string // in the order in which the locks are taken
	taken   []string
	asked   string // the lock that is being taken; empty: none
	pending int    // how many locks are being given back
	starts  []claim.Op

	stage multiLockStage
	again bool // take all locks again when all of them are given back
	err   error
}

type multiLockStage uint8

const (
	taking multiLockStage = iota
	holding
	lockLost  // a held lock was lost
	releasing // all locks are being given back
)

// NewMultiLock begins to take the locks. The order of paths does not matter.
func NewMultiLock(paths []string) *MultiLock {
	s := &MultiLock{paths: slices.Sorted(slices.Values(paths))}
	s.next()
	return s
}

// Held reports whether all locks are held.
func (s *MultiLock) Held() bool { return s.stage == holding }

// Over reports whether MultiLock has ended.
func (s *MultiLock) Over() bool { return s.stage == releasing && s.gone() }

// Err returns why MultiLock has ended.
func (s *MultiLock) Err() error { return s.err }

// Ready returns the operations to begin since the last call.
func (s *MultiLock) Ready() claim.Ready {
	r := claim.Ready{Start: s.starts}
	s.starts = nil
	return r
}

func (s *MultiLock) start(kind claim.OpKind, path string) {
	s.starts = append(s.starts, claim.Op{Kind: kind, Path: path})
}

// Step processes one event.
func (s *MultiLock) Step(_ claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case LockTaken:
		s.took(ev.Path)
	case LockRefused:
		s.asked = ""
		s.giveBack(false, ev.Err)
	case LockLost:
		s.lost()
	case LockGone:
		s.pending--
	case claim.Resign:
		if s.again {
			s.again, s.err = false, ev.Err
		}
		s.giveBack(false, ev.Err)
	}
	if s.again && s.gone() {
		s.stage, s.again = taking, false
		s.next()
	}
}

// gone reports whether no lock is held, being taken or being given back.
func (s *MultiLock) gone() bool { return s.asked == "" && s.pending == 0 }

// next takes the next lock, or records that all are held.
func (s *MultiLock) next() {
	if len(s.taken) == len(s.paths) {
		s.stage = holding
		return
	}
	s.asked = s.paths[len(s.taken)]
	s.start(claim.OpTake, s.asked)
}

// took processes a lock that was taken. If MultiLock is giving back its locks, it gives this one back too.
func (s *MultiLock) took(path string) {
	s.asked = ""
	if s.stage == releasing {
		s.pending++
		s.start(claim.OpGiveBack, path)
		return
	}
	s.taken = append(s.taken, path)
	s.next()
}

// lost processes the loss of a lock that is taken, or whose LockTaken follows this event.
func (s *MultiLock) lost() {
	switch s.stage {
	case taking:
		s.giveBack(true, nil)
	case holding:
		s.stage = lockLost
	}
}

// giveBack gives back the locks that are taken, and stops taking further ones. The first error is kept.
func (s *MultiLock) giveBack(again bool, err error) {
	if s.stage == releasing {
		return
	}
	s.stage, s.again, s.err = releasing, again, err
	if s.asked != "" {
		s.start(claim.OpStopTaking, s.asked)
	}
	s.pending = len(s.taken)
	for _, path := range slices.Backward(s.taken) {
		s.start(claim.OpGiveBack, path)
	}
	s.taken = nil
}
