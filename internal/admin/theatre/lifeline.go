package theatre

import "fmt"

// rowY is the top of a row.
func rowY(i int) float64 { return headHeight + float64(i)*rowHeight }

// base writes the name of a server and the line that all other elements of its row cover.
func (s *scene) base(w *svg, g *geometry, i int) {
	l := &s.lines[i]
	y := rowY(i) + ribbonY
	w.put(`<g class="line %s">`, colour(l.id))
	if l.rec != nil && l.rec.State == leading && decided(l.rec) {
		w.put(`<rect class="leader" x="0" y="%s" width="%s" height="%d" rx="8"/>`, y-rowHeight/2+4, g.width, rowHeight-8)
	}
	w.put(`<circle class="badge" cx="18" cy="%s" r="10"/>`, y)
	w.text("name", 36, y-1, gutter-40, cut(fmt.Sprintf("Server %d", l.id), 13))
	w.text("role", 36, y+13, gutter-40, cut(l.role(), 15))
	w.put(`<line class="base" x1="%s" x2="%s" y1="%s" y2="%s"/>`, gutter+0.0, g.end, y, y)
	w.WriteString("</g>\n")
}

// role says in a few letters what became of a server.
func (l *lifeline) role() string {
	switch {
	case l.rec == nil:
		return "no record"
	case decided(l.rec):
		return roleOf(l.rec.State, *l.rec.Leader)
	case l.rec.Phase == "look":
		return "looks"
	}
	return "no decision"
}

// piece is a part of a lifeline: what a server did or said from one point to the next.
type piece struct {
	from, to float64
	class    string
	colour   string
	text     string
	title    string
}

// lifeline writes what happened at a server.
func (s *scene) lifeline(w *svg, g *geometry, i int, name string) {
	l := &s.lines[i]
	y := rowY(i) + ribbonY
	if l.rec == nil {
		s.said(w, i)
		return
	}
	for _, p := range s.pieces(g, i) {
		if p.to <= p.from {
			continue
		}
		w.put(`<g class="piece %s %s" data-x="%s"><title>%s</title><rect x="%s" y="%s" width="%s" height="%d" rx="2"/>`,
			p.class, p.colour, p.from, p.title, p.from, y-ribbonHalf, p.to-p.from, 2*ribbonHalf)
		if p.text != "" {
			w.text("", p.from+padding, y+4, p.to-p.from-padding, p.text)
		}
		w.WriteString("</g>\n")
	}
	s.waits(w, g, i, name)
}

// said writes the votes of a server without a record, as others heard them.
func (s *scene) said(w *svg, i int) {
	y := rowY(i) + ribbonY
	for _, p := range s.along(i) {
		if p.chip == "" {
			continue
		}
		w.put(`<g class="piece said %s" data-x="%s"><rect x="%s" y="%s" width="%s" height="%d" rx="2"/>`,
			colour(p.vote.Leader), p.x, p.x, y-ribbonHalf+2, voteWidth(p.chip)-3, 2*ribbonHalf-4)
		w.text("", p.x+padding-1, y+4, voteWidth(p.chip)-2*padding, p.chip)
		w.WriteString("</g>\n")
	}
}

// pieces returns the parts of the lifeline of a server with a record.
func (s *scene) pieces(g *geometry, i int) (out []piece) {
	l := &s.lines[i]
	now := piece{class: "looks", colour: "c0", title: fmt.Sprintf("Server %d looks for a leader: %s", l.id, l.rec.Why)}
	for _, p := range s.along(i) {
		next := now
		switch p.kind {
		case begins:
			now.from = p.x
			continue
		case departs, arrives:
			continue
		case changes:
			next = piece{class: "looks", colour: colour(p.vote.Leader), text: p.chip, title: fmt.Sprintf("Server %d votes for %s", l.id, p.chip)}
		case decides:
			next = s.decision(l, p)
		case discovered, synchronised:
			now.class, now.text = "phase", p.phase
			if now.from == p.x-voteWidth("") {
				now.text = ""
			}
			next.class, next.text = "phase", ""
		}
		now.to = p.x
		out = append(out, now)
		next.from = p.x
		now = next
		if p.kind == decides {
			now.to = p.x + voteWidth(p.chip)
			out = append(out, now)
			now.from, now.class, now.text = now.to, "phase", ""
		}
	}
	now.to = g.end
	now.class, now.text, now.title = l.outcome(), l.tail(), fmt.Sprintf("Server %d %s", l.id, l.tail())
	return append(out, now)
}

// decision returns the part of a lifeline that shows the decision.
func (s *scene) decision(l *lifeline, p *point) piece {
	d := piece{class: "decision", colour: "c0", text: p.chip, title: fmt.Sprintf("Server %d: %s", l.id, l.rec.Ending)}
	if decided(l.rec) {
		d.colour = colour(p.vote.Leader)
	}
	return d
}

// outcome is the class of the end of a lifeline.
func (l *lifeline) outcome() string {
	switch {
	case l.rec.Epoch > 0:
		return "serves"
	case l.rec.Ended != "" || !decided(l.rec) && l.rec.Phase != "look":
		return "failed"
	}
	return "open"
}

// along returns the points of a line, from left to right.
func (s *scene) along(line int) (out []*point) {
	for _, i := range s.order() {
		if s.points[i].line == line {
			out = append(out, &s.points[i])
		}
	}
	return out
}

// waits writes the times in which a server waited for a better vote.
func (s *scene) waits(w *svg, g *geometry, i int, name string) {
	l := &s.lines[i]
	y := rowY(i) + ribbonY + ribbonHalf
	for _, t := range waits(l.rec) {
		from, to := g.xOf(l.began+t.from), g.xOf(l.began+t.to)
		for _, p := range s.along(i) {
			if p.at == l.began+t.from && (p.kind == changes || p.kind == arrives) {
				from = p.x
			}
			if p.at == l.began+t.to && p.kind == decides {
				to = p.x
			}
		}
		if to > from {
			w.put(`<rect class="wait" fill="url(#%s-wait)" x="%s" y="%s" width="%s" height="5" data-x="%s"><title>Server %d waits for a better vote, %s of at most %s</title></rect>`,
				name, from, y-5, to-from, from, l.id, duration(t.to-t.from), duration(t.max))
		}
	}
}
