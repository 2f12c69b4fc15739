package history

import (
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-analyze/charts"
)

// Measures of a chart.
const (
	width, height = 480, 170
	columns       = 120 // values that are drawn; each is the greatest of several
	labelSize     = 11
)

// Colours that stand for classes of the style sheet while the library draws.
var (
	inkLine = charts.ColorRGB(1, 2, 3)
	inkGrid = charts.ColorRGB(4, 5, 6)
	inkAxis = charts.ColorRGB(7, 8, 9)
	inkText = charts.ColorRGB(10, 11, 12)
)

var theme = charts.MakeTheme(charts.ThemeOption{
	AxisStrokeColor: inkAxis, AxisSplitLineColor: inkGrid, TextColor: inkText,
	BackgroundColor: charts.ColorTransparent, SeriesColors: []charts.Color{inkLine},
})

// Chart draws the series as SVG, without any colour: elements have the classes line, area,
// grid, axis and label.
func (s *Series) Chart() (string, error) {
	values, labels := s.columns()
	opt := charts.NewLineChartOptionWithData([][]float64{values})
	opt.Theme = theme
	opt.Padding = charts.NewBox(6, 10, 12, 4)
	opt.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	opt.LineStrokeWidth, opt.FillArea, opt.FillOpacity = 2, charts.Ptr(unbroken(values)), 100
	opt.Legend.Show = charts.Ptr(false)
	opt.XAxis.Labels, opt.XAxis.BoundaryGap, opt.XAxis.LabelCount = labels, charts.Ptr(false), 5
	opt.XAxis.LabelFontStyle.FontSize = labelSize
	opt.YAxis[0].LabelFontStyle.FontSize = labelSize
	opt.YAxis[0].Min, opt.YAxis[0].LabelCount = charts.Ptr(0.0), 4
	if s.Maximum == nil || *s.Maximum <= 0 {
		opt.YAxis[0].Max, opt.YAxis[0].LabelCount = charts.Ptr(1.0), 2
	}
	opt.ValueFormatter = Figure
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: width, Height: height, Theme: theme})
	if err := p.LineChart(opt); err != nil {
		return "", fmt.Errorf("chart of %s: %w", s.Name, err)
	}
	b, err := p.Bytes()
	if err != nil {
		return "", fmt.Errorf("chart of %s: %w", s.Name, err)
	}
	return s.dress(string(b)), nil
}

// unbroken reports whether values have no gap after the first one that is known. The library draws the area below a
// line with a gap as a triangle to the end of the chart, which looks like values.
func unbroken(values []float64) bool {
	gap := charts.GetNullValue()
	first := slices.IndexFunc(values, func(v float64) bool { return v != gap })
	return first >= 0 && !slices.Contains(values[first:], gap)
}

// columns returns the values to draw and the times below them. The hour is drawn in full
// from the start, so that charts of a new server have the same scale.
func (s *Series) columns() (values []float64, labels []string) {
	values, labels = make([]float64, columns), make([]string, columns)
	per := kept / columns
	skip := kept - len(s.Values)
	until := s.Until
	for c := range columns {
		values[c] = charts.GetNullValue()
		for k := c * per; k < (c+1)*per; k++ {
			if k < skip || s.Values[k-skip] == nil {
				continue
			}
			if v := *s.Values[k-skip]; values[c] == charts.GetNullValue() || v > values[c] {
				values[c] = v
			}
		}
		labels[c] = until.Add(-time.Duration(columns-1-c) * time.Duration(per) * Every).Format("15:04")
	}
	return values, labels
}

var (
	styled    = regexp.MustCompile(`style="([^"]*)"`)
	rgb       = regexp.MustCompile(`(stroke|fill):(rgba?\([0-9,. ]*\))`)
	opening   = regexp.MustCompile(`<svg [^>]*>`)
	backdrop  = regexp.MustCompile(`<path d="[^"]*" style="[^"]*fill:(?:white|none|rgba\(255,255,255,0\.?0*\)|transparent)"\s*/>`)
	hasStroke = regexp.MustCompile(`stroke:(?:rgb|#)`)
)

// dress replaces colours by classes, and adds title and description.
func (s *Series) dress(svg string) string {
	svg = backdrop.ReplaceAllStringFunc(svg, func(el string) string {
		if hasStroke.MatchString(el) {
			return el
		}
		return ""
	})
	svg = styled.ReplaceAllStringFunc(svg, func(style string) string { return `class="` + classOf(style) + `"` })
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-labelledby="chart-%s" width="%d" height="%d" viewBox="0 0 %d %d"><title id="chart-%s">%s</title>`,
		s.Name, width, height, width, height, s.Name, html.EscapeString(s.Text()))
	svg = strings.ReplaceAll(svg, "\nL ", "L")
	done := false
	return opening.ReplaceAllStringFunc(svg, func(string) string {
		if done {
			return ""
		}
		done = true
		return head
	})
}

// classOf returns the class that a style stands for.
func classOf(style string) string {
	for _, m := range rgb.FindAllStringSubmatch(style, -1) {
		digits := strings.FieldsFunc(m[2], func(r rune) bool { return r < '0' || r > '9' })
		if len(digits) < 3 {
			continue
		}
		switch strings.Join(digits[:3], ",") + " " + m[1] {
		case "1,2,3 stroke":
			return "line"
		case "1,2,3 fill":
			return "area"
		case "4,5,6 stroke":
			return "grid"
		case "7,8,9 stroke":
			return "axis"
		case "10,11,12 fill":
			return "label"
		}
	}
	return "none"
}

// Text says in words what the chart shows.
func (s *Series) Text() string {
	name := s.Title
	if s.Unit != "" {
		name += " in " + s.Unit
		if strings.HasPrefix(s.Unit, "per ") {
			name = s.Title + " " + s.Unit
		}
	}
	if s.Last == nil {
		return name + " in the last hour: nothing is known yet"
	}
	return fmt.Sprintf("%s in the last hour: minimum %s, last %s, maximum %s", name, Figure(*s.Minimum), Figure(*s.Last), Figure(*s.Maximum))
}

// Figure prints a value with few digits, for axes and texts. k stands for thousands, M for millions.
func Figure(v float64) string {
	switch a := math.Abs(v); {
	case a >= 9_999_500:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64) + "M"
	case a >= 99_950:
		return strconv.FormatFloat(v/1e3, 'f', 0, 64) + "k"
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
