package replica

import "testing"

// TestStallIsReported: a stall of the disk is told once, stands in Standing
// while it lasts, and its end is told too.
func TestStallIsReported(t *testing.T) {
	h := newHerd(t, 3, true)
	h.run(100)
	s := h.servers[0]
	told := func() (texts []string) {
		for _, w := range s.r.Ready().Happenings {
			texts = append(texts, w.String())
		}
		return texts
	}
	s.r.Step(h.now, DiskStalled{Since: h.now.Mono - 1200, Duty: "fsync of log.1"})
	s.r.Step(h.now, DiskStalled{Since: h.now.Mono - 1200, Duty: "fsync of log.1"})
	if got := s.r.Standing().Abstains; got != "the disk does not answer: fsync of log.1" {
		t.Errorf("Abstains is %q", got)
	}
	if got := told(); len(got) != 1 {
		t.Errorf("told %q", got)
	}
	s.r.Step(h.now, DiskAnswered{})
	s.r.Step(h.now, DiskAnswered{})
	if got := s.r.Standing().Abstains; got != "" {
		t.Errorf("Abstains is %q after the disk has answered", got)
	}
	if got := told(); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}
