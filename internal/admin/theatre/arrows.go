package theatre

import (
	"fmt"
	"math"
	"strings"
)

// stubLength is the length of an arrow whose arrival is not recorded.
const stubLength = 26

// arrow writes the arrow of a vote, from the edge of one lifeline to the edge of another.
func (s *scene) arrow(w *svg, i int) {
	a := &s.arrows[i]
	from := &s.points[a.start]
	down := 1.0
	if s.line(a.to) < from.line {
		down = -1
	}
	x1, y1 := from.x, rowY(from.line)+ribbonY+down*ribbonHalf
	if a.stop < 0 {
		w.put(`<g class="vote unheard %s" data-x="%s" data-end="%s"><title>%s</title><path d="M%s %sl%s %s"/><circle cx="%s" cy="%s" r="2.5"/></g>`,
			colour(a.vote.Leader), x1, x1+stubLength/2, a.describe(), x1, y1, stubLength/2.0, down*stubLength*0.6, x1+stubLength/2+1.4, y1+down*(stubLength*0.6+2.2))
		return
	}
	to := &s.points[a.stop]
	x2, y2 := to.x, rowY(to.line)+ribbonY-down*(ribbonHalf+1)
	angle := math.Atan2(y2-y1, x2-x1)
	hx, hy := x2-7*math.Cos(angle), y2-7*math.Sin(angle)
	w.put(`<g class="vote %s %s" data-x="%s" data-end="%s"><title>%s</title><path d="M%s %sL%s %s"/><path class="head" d="M%s %sL%s %sL%s %sz"/></g>`,
		a.class(), colour(a.vote.Leader), x1, x2, a.describe(), x1, y1, hx, hy,
		x2, y2, hx-4*math.Sin(angle), hy+4*math.Cos(angle), hx+4*math.Sin(angle), hy-4*math.Cos(angle))
}

// class says how important a vote was to its receiver.
func (a *arrow) class() string {
	var class string
	switch {
	case changesMind[a.verdict]:
		class = "adopted"
	case a.state != looking:
		class = "role"
	default:
		class = "plain"
	}
	if !a.sent {
		class += " guessed"
	}
	return class
}

// describe describes a delivery in one sentence.
func (d *delivery) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Server %d ", d.from)
	if d.state == looking {
		fmt.Fprintf(&b, "tells server %d that it votes for %s", d.to, voteText(d.vote, d.round))
	} else {
		fmt.Fprintf(&b, "tells server %d that it %s: %s", d.to, roleOf(d.state, d.vote.Leader), voteText(d.vote, d.round))
	}
	switch {
	case d.sent && d.heard:
		fmt.Fprintf(&b, "; sent at +%s, heard at +%s", duration(d.sentAt), duration(d.heardAt))
	case d.heard:
		fmt.Fprintf(&b, "; heard at +%s, when it was sent is not recorded", duration(d.heardAt))
	default:
		fmt.Fprintf(&b, "; sent at +%s, its arrival is not recorded", duration(d.sentAt))
	}
	if d.verdict != "" {
		fmt.Fprintf(&b, " (%s)", d.verdict)
	}
	if d.count > 1 {
		fmt.Fprintf(&b, "; sent %d times", d.count)
	}
	return b.String()
}

// outline says to whom a vote went, and what became of it.
func (d *delivery) outline() string {
	what := fmt.Sprintf("to server %d", d.to)
	if d.state != looking {
		what += fmt.Sprintf(" (%s)", roleOf(d.state, d.vote.Leader))
	}
	switch {
	case d.sent && d.heard:
		what += fmt.Sprintf(", heard at +%s: %s", duration(d.heardAt), d.verdict)
	case d.heard:
		what += fmt.Sprintf(", time of arrival; when it was sent is not recorded: %s", d.verdict)
	default:
		what += ", its arrival is not recorded"
	}
	if d.count > 1 {
		what += fmt.Sprintf(" (%d times)", d.count)
	}
	return what
}
