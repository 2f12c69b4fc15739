package sim

import (
	"fmt"
	"hash/fnv"
	"io"
)

// story is the end of what happened, for who reads of a failure.
type story struct {
	ring   [storyMax]string
	n      int
	digest uint64 // of all lines
}

// storyMax is how many lines are kept.
const storyMax = 400

// add puts a line behind the others, the oldest being forgotten.
func (t *story) add(line string) {
	t.ring[t.n%storyMax] = line
	t.n++
	h := fnv.New64a()
	fmt.Fprintf(h, "%016x", t.digest)
	io.WriteString(h, line)
	t.digest = h.Sum64()
}

func (t *story) lines() []string {
	var out []string
	for i := max(0, t.n-storyMax); i < t.n; i++ {
		out = append(out, t.ring[i%storyMax])
	}
	return out
}

// tell adds a line to the story.
func (s *Sim) tell(format string, args ...any) {
	line := fmt.Sprintf("%9.3f  ", float64(s.now)/float64(second)) + fmt.Sprintf(format, args...)
	s.story.add(line)
	if s.traces {
		s.opt.Trace(line)
	}
}

// trace adds a line for those who want to see everything.
func (s *Sim) trace(format string, args ...any) {
	if s.traces {
		s.opt.Trace(fmt.Sprintf("%9.3f      ", float64(s.now)/float64(second)) + fmt.Sprintf(format, args...))
	}
}
