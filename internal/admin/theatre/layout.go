package theatre

import "math"

// Measures of the drawing, in pixels.
const (
	gutter     = 132 // width of the names
	headHeight = 44  // height of the axis
	rowHeight  = 66
	ribbonY    = 34 // middle of a lifeline, from the top of its row
	ribbonHalf = 11
	padding    = 8   // left and right of the text on a lifeline
	charWidth  = 6.7 // of a letter of a vote, at 11 px in a monospaced font
	textWidth  = 6.4 // at most, of a letter of another text, at 11 px
	arrowRun   = 40  // least width of an arrow
	tailMax    = 60  // letters of the text at the end of a lifeline
	widthMin   = 900
	spanMax    = 190
)

// tick is a time on the axis.
type tick struct {
	at int64
	x  float64
}

// geometry is where the points of a scene are drawn.
type geometry struct {
	ticks []tick
	end   float64 // right end of the lifelines
	width float64
}

// span is the least distance between two points that are ms apart in time. It is not to scale:
// the lifelines show the order, and the bars below them show times to scale.
func span(ms int64) float64 { return min(10+16*math.Log1p(float64(ms)), spanMax) }

// voteWidth is the width of a vote or decision with the padding around it.
func voteWidth(s string) float64 { return float64(len([]rune(s)))*charWidth + 2*padding }

func proseWidth(s string) float64 { return float64(len([]rune(s))) * textWidth }

// gap is the least distance of a point from the one before on the same line.
func (k kind) gap() float64 {
	switch k {
	case begins:
		return 0
	case changes:
		return 5
	case decides:
		return 14
	case discovered, synchronised:
		return 16
	}
	return 9
}

// layout decides where each point is drawn: to the right of the point before it on its line, far
// enough for the label between them, to the right of its cause, and to the right of everything
// earlier.
func (s *scene) layout() geometry {
	var g geometry
	var now int64
	front := float64(gutter + 24)
	column := front
	last, textEnd := make([]float64, len(s.lines)), make([]float64, len(s.lines))
	fresh := make([]bool, len(s.lines)) // nothing has happened since the server began to look
	for n, i := range s.order() {
		p := &s.points[i]
		if at := max(p.at, now); n == 0 || at > now {
			if n > 0 {
				column = front + span(at-now)
			}
			g.ticks, now = append(g.ticks, tick{at, column}), at
		}
		x := column
		if last[p.line] > 0 && !fresh[p.line] {
			x = max(x, last[p.line]+p.kind.gap())
		}
		fresh[p.line] = p.kind == begins
		if p.chip != "" {
			x = max(x, textEnd[p.line])
			textEnd[p.line] = x + voteWidth(p.chip)
		}
		if p.kind == discovered || p.kind == synchronised {
			x = max(x, textEnd[p.line]+proseWidth(p.phase)+2*padding)
			textEnd[p.line] = x
		}
		if p.cause >= 0 {
			x = max(x, s.points[p.cause].x+arrowRun)
		}
		p.x, last[p.line] = x, x
		front = max(front, x)
	}
	g.end = front + 30
	g.width = s.tails(&g, last, textEnd)
	return g
}

// tails makes room for the texts at the ends of the lifelines, and returns the width of
// the drawing.
func (s *scene) tails(g *geometry, last, textEnd []float64) float64 {
	width := max(g.end+24, widthMin)
	for i := range s.lines {
		width = max(width, max(last[i], textEnd[i])+proseWidth(s.lines[i].tail())+2*padding+24)
	}
	g.end = width - 20
	return width
}

// xOf returns where a time is drawn.
func (g *geometry) xOf(at int64) float64 {
	for i := len(g.ticks) - 1; i >= 0; i-- {
		t := g.ticks[i]
		if t.at > at {
			continue
		}
		if i+1 == len(g.ticks) {
			return t.x
		}
		next := g.ticks[i+1]
		return t.x + (next.x-t.x)*float64(at-t.at)/float64(next.at-t.at)
	}
	return gutter + 24
}

// tail is the text at the end of a lifeline.
func (l *lifeline) tail() string {
	r := l.rec
	switch {
	case r == nil:
		return ""
	case r.Phase == "look":
		return "still looks"
	case r.Epoch > 0 && r.Ended != "":
		return "serves epoch " + number64(int64(r.Epoch)) + " for " + duration(r.ServeMS)
	case r.Epoch > 0:
		return "serves epoch " + number64(int64(r.Epoch))
	case r.Ended != "":
		return cut("gave up: "+r.Ended, tailMax)
	}
	return "in " + r.Phase
}
