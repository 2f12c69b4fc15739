package bench

import (
	"fmt"
	"strconv"

	"github.com/go-analyze/charts"
)

// Measures of a chart.
const (
	chartWidth, chartHeight = 800, 420
	textSize                = 12
)

// chartOf draws the latencies of all reports by percentile, as SVG. Reports without latencies
// are shown by a title that says so.
func chartOf(reports []*Report) ([]byte, error) {
	var lines [][]float64
	var names, labels []string
	for _, r := range reports {
		points := r.distribution()
		if points == nil {
			continue
		}
		var line []float64
		labels = labels[:0]
		for _, p := range points {
			line = append(line, float64(p.US)/1000)
			labels = append(labels, percentLabel(p.Percent))
		}
		name := r.Kind
		if rate := r.PerSecond(); rate > 0 {
			name = fmt.Sprintf("%s (%.0f/s)", name, rate)
		}
		lines, names = append(lines, line), append(names, name)
	}
	if len(lines) == 0 {
		lines, names, labels = [][]float64{{0}}, []string{"no latencies"}, []string{""}
	}
	opt := charts.NewLineChartOptionWithData(lines)
	opt.Title.Text, opt.Title.FontStyle.FontSize = "latency in ms, by percentile", textSize
	opt.Padding = charts.NewBox(10, 10, 20, 10)
	opt.Legend.SeriesNames, opt.Legend.Offset = names, charts.OffsetStr{Top: "24"}
	opt.XAxis.Labels, opt.XAxis.LabelCount, opt.XAxis.BoundaryGap = labels, len(labels), charts.Ptr(true)
	opt.XAxis.LabelFontStyle.FontSize, opt.Legend.FontStyle.FontSize = textSize, textSize
	opt.YAxis[0].Min = charts.Ptr(0.0)
	opt.ValueFormatter = func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	if err := p.LineChart(opt); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return p.Bytes()
}

// percentLabel returns the name of a percentile.
func percentLabel(percent float64) string {
	switch percent {
	case 0:
		return "min"
	case 100:
		return "max"
	}
	return "p" + strconv.FormatFloat(percent, 'f', -1, 64)
}
