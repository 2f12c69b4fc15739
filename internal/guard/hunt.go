//go:build unix

package guard

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hunt kills all descendants of a process, again and again until none is left,
// since they may fork meanwhile.
type hunt struct {
	began, last time.Time
	found       family
	blind       error // why descendants cannot be found
}

const (
	// dyingTime is how long a process may take to end after SIGKILL before people are told.
	dyingTime = time.Second
	huntMin   = 5 * time.Millisecond
	huntMax   = time.Second
	shownMax  = 5                // processes that a message names
	tellPace  = 30 * time.Second // how often people are told of them
)

// due reports whether it is time to look again. What ends with the command
// itself needs no search: the first one is after huntMin.
func (h *hunt) due() bool {
	if h.began.IsZero() {
		h.began = time.Now()
		h.last = h.began
	}
	return h.next() <= 0
}

// next is the time until the next search: the longer the hunt takes, the fewer.
func (h *hunt) next() time.Duration {
	pause := min(max(h.last.Sub(h.began)/8, huntMin), huntMax)
	return pause - time.Since(h.last)
}

// kill kills the descendants of root, but not the processes in except and
// theirs. over: none lives any more. Some may have ended whose parent does not
// collect them, as a debugger that holds them stopped.
func (h *hunt) kill(root int, except []int) (over bool) {
	h.last = time.Now()
	h.found, h.blind = familyOf(root, except)
	h.found.signal(syscall.SIGKILL)
	return h.blind == nil && len(h.found.living) == 0 && h.found.zombies && h.last.Sub(h.began) > dyingTime
}

// survivors names what has not ended in dyingTime, without children; empty before that.
func (h *hunt) survivors() string {
	if h.last.Sub(h.began) < dyingTime {
		return ""
	}
	lives := map[int]bool{}
	for _, p := range h.found.living {
		lives[p.pid] = true
	}
	tops := slices.DeleteFunc(slices.Clone(h.found.living), func(p process) bool { return lives[p.parent] })
	var names []string
	for _, p := range tops[:min(len(tops), shownMax)] {
		names = append(names, p.String())
	}
	if more := len(tops) - shownMax; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	switch {
	case h.blind != nil:
		names = []string{fmt.Sprintf("a process of the command, which cannot be found (%v),", h.blind)}
	case len(names) == 0:
		names = []string{"a process of the command that /proc does not show"}
	}
	return strings.Join(names, ", ") + " does not end by SIGKILL"
}
