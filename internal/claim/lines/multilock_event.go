package lines

// LockTaken reports that a lock is held.
type LockTaken struct{ Path string }

// LockRefused reports that a lock could not be taken, and that nothing is left of the attempt. Err says
// why.
type LockRefused struct {
	Path string
	Err  error
}

// LockLost reports that a held lock was lost. If a lock is lost as soon as it is taken, LockLost may be
// stepped before LockTaken.
type LockLost struct{ Path string }

// LockGone reports that a lock has been given back.
type LockGone struct{ Path string }

func (LockTaken) Event()   {}
func (LockRefused) Event() {}
func (LockLost) Event()    {}
func (LockGone) Event()    {}
