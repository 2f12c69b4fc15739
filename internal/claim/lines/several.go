package lines

import (
	"slices"

	"bellwether/internal/claim"
)

// Several is one who takes several locks, and holds all of them or none. They
// are taken in the order of their paths, so that those who want some of the same
// do not wait for each other in a circle.
//
//	take the first ▸ it is taken: take the next ▸ … ▸ all are: they are held
//	one is lost meanwhile ▸ stop, give back the others, the last one first ▸ all are gone: take the first
//	one cannot be taken   ▸ the same ▸ all are gone: over
//	resign                ▸ the same ▸ over
//
// Once they are held, the loss of one ends that, and no more: what was done under
// them has to stop before the others are given back, which Resign is for.
//
// It makes no requests: all that it wants done are operations of [claim.Ready].Start, whose ends are stepped
// as events.
type Several struct {
	paths  []string // in the order in which they are taken
	taken  []string
	asked  string // the one that is being taken; empty: none
	going  int    // how many are given back, and not gone yet
	starts []claim.Op

	stage severalStage
	again bool // begin anew when all are gone
	err   error
}

type severalStage uint8

const (
	taking severalStage = iota
	holding
	spoilt    // one of those that were held is lost
	returning // all are given back
)

// NewSeveral begins to take locks, whatever the order in which they are given.
func NewSeveral(paths []string) *Several {
	s := &Several{paths: slices.Sorted(slices.Values(paths))}
	s.next()
	return s
}

// Held reports whether all are held, Over whether nothing is left to do.
func (s *Several) Held() bool { return s.stage == holding }
func (s *Several) Over() bool { return s.stage == returning && s.gone() }

// Err is why it has ended.
func (s *Several) Err() error { return s.err }

// Ready hands out the operations to begin since the last call.
func (s *Several) Ready() claim.Ready {
	r := claim.Ready{Start: s.starts}
	s.starts = nil
	return r
}

func (s *Several) start(kind claim.OpKind, path string) {
	s.starts = append(s.starts, claim.Op{Kind: kind, Path: path})
}

// Step takes one event.
func (s *Several) Step(_ claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case LockTaken:
		s.took(ev.Path)
	case LockRefused:
		s.asked = ""
		s.giveBack(false, ev.Err)
	case LockLost:
		s.lost()
	case LockGone:
		s.going--
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

// gone: nothing is held, nor on its way.
func (s *Several) gone() bool { return s.asked == "" && s.going == 0 }

// next takes the next one, if there is one left.
func (s *Several) next() {
	if len(s.taken) == len(s.paths) {
		s.stage = holding
		return
	}
	s.asked = s.paths[len(s.taken)]
	s.start(claim.OpTake, s.asked)
}

// took: one that comes after it was to be stopped is given back like the others.
func (s *Several) took(path string) {
	s.asked = ""
	if s.stage == returning {
		s.going++
		s.start(claim.OpGiveBack, path)
		return
	}
	s.taken = append(s.taken, path)
	s.next()
}

// lost: one that was taken, or is just about to be told to be, is lost.
func (s *Several) lost() {
	switch s.stage {
	case taking:
		s.giveBack(true, nil)
	case holding:
		s.stage = spoilt
	}
}

// giveBack gives back what was taken, and stops what is being taken; the first
// reason counts.
func (s *Several) giveBack(again bool, err error) {
	if s.stage == returning {
		return
	}
	s.stage, s.again, s.err = returning, again, err
	if s.asked != "" {
		s.start(claim.OpStopTaking, s.asked)
	}
	s.going = len(s.taken)
	for _, path := range slices.Backward(s.taken) {
		s.start(claim.OpGiveBack, path)
	}
	s.taken = nil
}
