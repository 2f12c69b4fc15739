package sim

import (
	"fmt"
	"hash/fnv"
	"io"

	"bellwether/internal/sim/machine"
)

// trace keeps the last lines about what happened, for the reader of a failure.
type trace struct {
	ring   [traceMax]string
	n      int
	digest uint64 // digest of all lines
}

// traceMax is the number of lines that are kept.
const traceMax = 400

// add adds a line. If there are traceMax lines, it drops the oldest one.
func (t *trace) add(line string) {
	t.ring[t.n%traceMax] = line
	t.n++
	h := fnv.New64a()
	fmt.Fprintf(h, "%016x", t.digest)
	io.WriteString(h, line)
	t.digest = h.Sum64()
}

func (t *trace) lines() []string {
	var out []string
	for i := max(0, t.n-traceMax); i < t.n; i++ {
		out = append(out, t.ring[i%traceMax])
	}
	return out
}

// tell adds a line to the trace.
func (s *Sim) tell(format string, args ...any) {
	line := fmt.Sprintf("%9.3f  ", float64(s.now)/float64(machine.Second)) + fmt.Sprintf(format, args...)
	s.trace.add(line)
	if s.detailed {
		s.opt.Trace(line)
	}
}

// detail passes a line to Options.Trace only. The trace of a failure does not contain it.
func (s *Sim) detail(format string, args ...any) {
	if s.detailed {
		s.opt.Trace(fmt.Sprintf("%9.3f      ", float64(s.now)/float64(machine.Second)) + fmt.Sprintf(format, args...))
	}
}
