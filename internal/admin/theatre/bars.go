package theatre

import (
	"fmt"

	"bellwether/internal/admin/elog"
)

// Measures of the bars.
const (
	barPitch  = 24
	barHeight = 12
	barText   = 340 // width of the numbers to the right of the bars
	barHead   = 30
)

// stretch is a wait from one time to another, in ms since the server began to look. max is the
// longest time that the server would have waited.
type stretch struct{ from, to, max int64 }

// waits returns when a server waited for a better vote. A wait ends after its longest time,
// when the vote changes, or with the decision.
func waits(r *elog.Election) (out []stretch) {
	for i, at := range r.WaitsAtMS {
		if i >= len(r.WaitsMS) {
			break
		}
		end := at + r.WaitsMS[i]
		if r.Phase != "look" {
			end = min(end, r.LookMS)
		}
		for _, c := range r.Changes {
			if c.AtMS > at {
				end = min(end, c.AtMS)
			}
		}
		if end > at {
			out = append(out, stretch{at, end, r.WaitsMS[i]})
		}
	}
	return out
}

// bars are the bars below the drawing: how long each phase took, to scale.
type bars struct {
	e           *Election
	top, bottom float64
	width       float64 // of the drawing
	total       int64   // ms from the left to the right end of the scale
}

func (e *Election) bars(width, top float64) *bars {
	b := &bars{e: e, top: top, width: width, total: 1}
	start := e.Began()
	for i := range e.records {
		b.total = max(b.total, e.began(i).Sub(start).Milliseconds()+lasted(&e.records[i]))
	}
	b.bottom = top + barHead + float64(min(len(e.records), linesMax)+1)*barPitch + 64
	return b
}

func (b *bars) x(at int64) float64 {
	return gutter + (b.width-gutter-barText)*float64(at)/float64(b.total)
}

// draw writes the bars of all servers, and first one of the whole election.
func (b *bars) draw(w *svg, name string) {
	w.WriteString(`<g class="bars">` + "\n")
	w.text("heading", 6, b.top+16, 230, "Where the time went, to scale")
	x := float64(gutter) + 130
	for _, p := range [...]struct{ class, name string }{{"looks", "votes"}, {"wait", "wait for better votes"}, {"discovers", "discovery"}, {"synchronises", "synchronisation"}} {
		w.put(`<rect class="looks %s" x="%s" y="%s" width="12" height="10"/>`, p.class, x, b.top+7)
		if p.class == "wait" {
			w.put(`<rect fill="url(#%s-wait)" x="%s" y="%s" width="12" height="10"/>`, name, x, b.top+7)
		}
		w.text("sum", x+17, b.top+16, proseWidth(p.name), p.name)
		x += 17 + proseWidth(p.name) + 16
	}
	y := b.top + barHead
	w.text("name", 6, y+11, gutter-12, "Ensemble")
	until, text := b.e.withoutService()
	w.put(`<rect class="absent" x="%s" y="%s" width="%s" height="%d"><title>%s</title></rect>`,
		b.x(0), y, max(b.x(until)-b.x(0), 1), barHeight, text)
	w.text("sum", b.width-barText+14, y+11, proseWidth(text), text)
	start := b.e.Began()
	for i := range b.e.records[:min(len(b.e.records), linesMax)] {
		y += barPitch
		b.server(w, &b.e.records[i], b.e.began(i).Sub(start).Milliseconds(), y, name)
	}
	b.legend(w, y+barPitch+20)
	w.WriteString("</g>\n")
}

// server writes the bar of one server.
func (b *bars) server(w *svg, r *elog.Election, began int64, y float64, name string) {
	w.text("name", 6, y+11, gutter-12, cut("Server "+number64(int64(r.Server)), 18))
	at := began
	piece := func(class string, ms int64, what string) {
		if ms > 0 {
			w.put(`<rect class="%s" x="%s" y="%s" width="%s" height="%d"><title>%s: %s</title></rect>`,
				class, b.x(at), y, max(b.x(at+ms)-b.x(at), 1.5), barHeight, what, duration(ms))
		}
		at += ms
	}
	piece("looks", r.LookMS, "looks for a leader")
	piece("discovers", r.DiscoverMS, "discovery")
	piece("synchronises", r.SynchroniseMS, "synchronisation")
	for _, t := range waits(r) {
		w.put(`<rect class="wait" fill="url(#%s-wait)" x="%s" y="%s" width="%s" height="%d"><title>waits for a better vote: %s</title></rect>`,
			name, b.x(began+t.from), y, max(b.x(began+t.to)-b.x(began+t.from), 1.5), barHeight, duration(t.to-t.from))
	}
	text := sums(r)
	w.text("sum", b.width-barText+14, y+11, proseWidth(text), text)
}

// sums says how long each phase of a server took.
func sums(r *elog.Election) string {
	waited := int64(0)
	for _, t := range waits(r) {
		waited += t.to - t.from
	}
	text := "votes " + number64(max(r.LookMS-waited, 0))
	if waited > 0 {
		text += " + wait " + number64(waited)
	}
	if r.DiscoverMS > 0 {
		text += " + discovery " + number64(r.DiscoverMS)
	}
	if r.SynchroniseMS > 0 {
		text += " + sync " + number64(r.SynchroniseMS)
	}
	return cut(text+" = "+number64(lasted(r))+" ms", 54)
}

// withoutService returns how long it took until the leader served, and the same in words. If the record of the leader is
// missing, the time is that of the first other server that served.
func (e *Election) withoutService() (until int64, text string) {
	until, by := e.withoutLeader()
	switch {
	case by == nil:
		return until, "no leader yet"
	case by.State == leading:
		return until, duration(until) + " without a leader"
	}
	return until, fmt.Sprintf("%s until server %d served", duration(until), by.Server)
}

// withoutLeader returns the time of withoutService, and the record of the server that served then. If no server served,
// the record is nil, and the time is when the last server gave up.
func (e *Election) withoutLeader() (until int64, by *elog.Election) {
	start := e.Began()
	for i := range e.records {
		r := &e.records[i]
		end := e.began(i).Sub(start).Milliseconds() + lasted(r)
		switch {
		case r.State == leading && r.Epoch > 0:
			return end, r
		case r.Epoch > 0 && (by == nil || end < until):
			until, by = end, r
		case by == nil:
			until = max(until, end)
		}
	}
	return until, by
}

// legend says what the lines of arrows mean.
func (b *bars) legend(w *svg, y float64) {
	x := 10.0
	for _, l := range [...]struct{ class, text string }{
		{"vote adopted c0", "a vote that changed the receiver's vote"}, {"vote plain c0", "another vote"},
		{"vote role c0", "from a server that follows or leads"}, {"vote guessed c0", "sent earlier, time unknown"},
		{"vote unheard c0", "arrival not recorded"},
	} {
		if x+34+proseWidth(l.text) > b.width {
			x, y = 10, y+18
		}
		w.put(`<g class="%s"><path d="M%s %sh26"/></g>`, l.class, x, y-4)
		if l.class == "vote unheard c0" {
			w.put(`<g class="%s"><circle cx="%s" cy="%s" r="2.5"/></g>`, l.class, x+28, y-4)
		}
		w.text("sum", x+34, y, proseWidth(l.text), l.text)
		x += 34 + proseWidth(l.text) + 14
	}
}
