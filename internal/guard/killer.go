//go:build unix

package guard

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killer kills all descendants of a process. It searches again until none is left,
// since they may fork meanwhile.
type killer struct {
	began, last time.Time // times of the first and the last search
	found       family
	searchErr   error // why the last search could not find descendants; nil: it could
	// stuck holds the pids of the ended processes that the last search found and that nobody has
	// reaped. Since stuckFrom every search has found these and no living process.
	stuck     []int
	stuckFrom time.Time
}

const (
	// killTimeout is how long a process may take to end after SIGKILL before it is reported.
	killTimeout    = time.Second
	pauseMin       = 5 * time.Millisecond
	pauseMax       = time.Second
	shownMax       = 5                // processes that a message names
	reportInterval = 30 * time.Second // how often survivors are reported
)

// due reports whether it is time for the next search. The first search comes after
// pauseMin: most processes end together with the command.
func (k *killer) due() bool {
	if k.began.IsZero() {
		k.began = time.Now()
		k.last = k.began
	}
	return k.next() <= 0
}

// next returns the time until the next search. The pauses grow with the total time.
func (k *killer) next() time.Duration {
	pause := min(max(k.last.Sub(k.began)/8, pauseMin), pauseMax)
	return pause - time.Since(k.last)
}

// kill kills the descendants of root, except the processes in except and their
// descendants. over reports that for longer than killTimeout only the same zombies were left:
// their parent, such as a debugger that holds them, does not reap them. One search proves
// nothing, because it may miss a process whose parent changes meanwhile.
func (k *killer) kill(root int, except []int) (over bool) {
	k.last = time.Now()
	k.found, k.searchErr = familyOf(root, except)
	k.found.signal(syscall.SIGKILL)
	if k.searchErr != nil || len(k.found.living) > 0 || len(k.found.zombies) == 0 || !slices.Equal(k.found.zombies, k.stuck) {
		k.stuck, k.stuckFrom = k.found.zombies, k.last
	}
	return len(k.stuck) > 0 && k.last.Sub(k.stuckFrom) > killTimeout
}

// survivors describes the processes that have not ended within killTimeout, without
// their children. It returns "" before that.
func (k *killer) survivors() string {
	if k.last.Sub(k.began) < killTimeout {
		return ""
	}
	lives := map[int]bool{}
	for _, p := range k.found.living {
		lives[p.pid] = true
	}
	tops := slices.DeleteFunc(slices.Clone(k.found.living), func(p process) bool { return lives[p.parent] })
	var names []string
	for _, p := range tops[:min(len(tops), shownMax)] {
		names = append(names, p.String())
	}
	if more := len(tops) - shownMax; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	switch {
	case k.searchErr != nil:
		names = []string{fmt.Sprintf("a process of the command (not found: %v)", k.searchErr)}
	case len(names) == 0:
		names = []string{"a process of the command that /proc does not show"}
	}
	return strings.Join(names, ", ") + " does not end after SIGKILL"
}
