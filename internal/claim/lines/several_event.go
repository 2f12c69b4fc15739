package lines

// LockTaken: a lock is held.
type LockTaken struct{ Path string }

// LockRefused: it is not, and nothing is left of the attempt; Err says why.
type LockRefused struct {
	Path string
	Err  error
}

// LockLost: a lock is lost that was held. Of one that was lost as soon as it was
// taken it comes before LockTaken.
type LockLost struct{ Path string }

// LockGone: what was held of a lock is given back, and gone.
type LockGone struct{ Path string }

func (LockTaken) Event()   {}
func (LockRefused) Event() {}
func (LockLost) Event()    {}
func (LockGone) Event()    {}
