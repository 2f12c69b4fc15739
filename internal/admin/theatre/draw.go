package theatre

import (
	_ "embed" // for the style sheet
	"fmt"

	"bellwether/internal/ensemble"
)

// Style is the style sheet of the drawings.
//
//go:embed theatre.css
var Style string

// Drawing is an election as a picture, and the same in a table.
type Drawing struct {
	SVG   string
	Facts []Fact
	// LeftOut counts recorded votes that are not drawn, because there are too many;
	// Unrecorded counts those that the servers did not record, for the same reason.
	LeftOut, Unrecorded int

	texts []box
	drawn int
}

// Draw draws the election. name distinguishes the ids of elements from those of other
// drawings on a page; it consists of letters. With alone, the drawing contains its style
// sheet, for use as a file.
func (e *Election) Draw(name string, alone bool) Drawing {
	s := e.scene()
	g := s.layout()
	w := &svg{}
	height := headHeight + float64(len(s.lines))*rowHeight + 10
	bars := e.bars(g.width, height)
	w.put(`<svg xmlns="http://www.w3.org/2000/svg" class="theatre" role="img" aria-labelledby="%s-title %s-desc" width="%s" height="%s" viewBox="0 0 %s %s">`,
		name, name, g.width, bars.bottom, g.width, bars.bottom)
	w.put(`<title id="%s-title">%s</title>`, name, e.Line())
	w.put(`<desc id="%s-desc">%s</desc>`, name, e.description())
	if alone {
		fmt.Fprintf(w, "<style>\n%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", Style)
	}
	w.patterns(name)
	s.axis(w, &g, height)
	for i := range s.lines {
		s.base(w, &g, i)
	}
	for i := range s.arrows {
		s.arrow(w, i)
	}
	for i := range s.lines {
		s.lifeline(w, &g, i, name)
	}
	bars.draw(w, name)
	w.put(`<line class="playhead" x1="0" x2="0" y1="%s" y2="%s"/>`, headHeight-12.0, height)
	w.WriteString("</svg>\n")
	d := Drawing{SVG: w.String(), LeftOut: s.leftOut, Unrecorded: s.unrecorded, texts: w.texts}
	for i := range s.arrows {
		d.drawn += s.arrows[i].count
	}
	d.Facts = s.facts()
	return d
}

// colour returns the class of a server's colour, which is the same in all drawings. There are
// nine colours. If servers share a colour, names and labels distinguish them.
func colour(id ensemble.ServerID) string {
	if id <= 0 {
		return "c0"
	}
	return "c" + number64((int64(id)-1)%9+1)
}

// patterns defines the hatching of waits and phases.
func (w *svg) patterns(name string) {
	w.put(`<defs><pattern id="%s-wait" class="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6"/></pattern></defs>`, name)
}

// axis writes the times at the top.
func (s *scene) axis(w *svg, g *geometry, height float64) {
	w.WriteString(`<g class="axis" aria-hidden="true">` + "\n")
	free := 0.0
	for _, t := range g.ticks {
		w.put(`<line class="tick" data-at="%d" x1="%s" x2="%s" y1="%s" y2="%s"/>`, t.at, t.x, t.x, headHeight-8.0, height)
		label := "+" + duration(t.at)
		if width := proseWidth(label); t.x >= free {
			w.text("time", t.x, headHeight-14, width, label)
			free = t.x + width + 12
		}
	}
	w.WriteString("</g>\n")
}
