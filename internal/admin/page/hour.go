package page

import (
	"fmt"
	"html/template"
	"net/http"

	"bellwether/internal/admin/history"
)

// hourContent is what the page of the last hour shows.
type hourContent struct {
	EverySeconds float64
	Charts       []chart
}

// chart is what the page shows of one figure: texts and the drawing.
type chart struct {
	Name, Title, Unit, About string
	Last, Range              string
	SVG                      template.HTML
}

// lastHour reads the last hour of all figures.
func (p *Page) lastHour(*http.Request) (any, error) {
	if p.o.History == nil {
		return nil, &Problem{Status: http.StatusNotFound, What: "This server keeps no history of its figures.", Do: "Read them from /metrics."}
	}
	c := &hourContent{EverySeconds: history.Every.Seconds()}
	for _, s := range p.o.History.Series() {
		svg, err := s.Chart()
		if err != nil {
			return nil, err
		}
		one := chart{Name: s.Name, Title: s.Title, Unit: s.Unit, About: sentence(s.About), Last: "–", Range: "Nothing is known yet.",
			SVG: template.HTML(svg)} //nolint:gosec // it contains only names and numbers of this program
		if s.Last != nil {
			one.Last = history.Figure(*s.Last)
			one.Range = fmt.Sprintf("Minimum %s, maximum %s.", history.Figure(*s.Minimum), history.Figure(*s.Maximum))
		}
		c.Charts = append(c.Charts, one)
	}
	return c, nil
}
