package lines

import (
	"testing"
	"time"

	"bellwether/internal/claim"
)

// check returns the first invariant of the Line that does not hold, or an empty text. before is the Line as it
// was before the last step; its zero value has had no step.
func (l *Line) check(before lineBefore) string {
	switch {
	case l.phase < before.phase:
		return "the phase went back from " + before.phase.String() + " to " + l.phase.String()
	case before.led && !l.led, l.phase == Leading && !l.led:
		return "led is false after the term began"
	case l.Over() && l.phase != Done:
		return "the Requester has ended in the phase " + l.phase.String()
	case (l.phase == Standing || l.phase == Leading) && l.own.Name == "":
		return "the bid has no name in the phase " + l.phase.String()
	}
	return ""
}

// lineBefore is the part of a Line that only changes in one direction.
type lineBefore struct {
	phase Phase
	led   bool
}

// before returns the state of the lines of a machine before a step.
func before(m machine) map[*Line]lineBefore {
	was := map[*Line]lineBefore{}
	for _, l := range lines(m) {
		was[l] = lineBefore{l.phase, l.led}
	}
	return was
}

// TestCheckFindsBrokenLines shows that check notices each invariant that is broken.
func TestCheckFindsBrokenLines(t *testing.T) {
	for name, c := range map[string]struct {
		before lineBefore
		broken func(l *Line)
	}{
		"phase":       {lineBefore{phase: Standing}, func(*Line) {}},
		"led before":  {lineBefore{led: true}, func(*Line) {}},
		"led":         {lineBefore{}, func(l *Line) { l.phase, l.own.Name = Leading, "n_1" }},
		"no name":     {lineBefore{}, func(l *Line) { l.phase = Standing }},
		"ended early": {lineBefore{}, func(l *Line) { l.Requester.End(claim.Withdrawn, nil) }},
	} {
		l := NewLine(Config{Parent: "/l", Nonce: claim.Nonce{1}})
		if wrong := l.check(lineBefore{}); wrong != "" {
			t.Fatal(wrong)
		}
		l.Step(claim.Moment{Mono: time.Second, Wall: time.Second}, claim.Disconnected{})
		if c.broken(l); l.check(c.before) == "" {
			t.Errorf("%s: check has not noticed the broken invariant", name)
		}
	}
}
