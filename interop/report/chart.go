package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/go-analyze/charts"
)

// chart is a drawing of the ratios of Bellwether to another system.
type chart struct {
	file, title string
	svg         []byte
}

// ratioCharts draws the median ratios of the first figure of each row, to each other system.
func ratioCharts(all []result) (drawn []chart, err error) {
	for _, other := range []string{zooKeeper, etcd} {
		var names []string
		var bars []float64
		for _, row := range rows {
			for _, f := range figureNames(all, row.name)[:min(1, len(figureNames(all, row.name)))] {
				found := ratios(values(all, row.name, f.Name, bellwether), values(all, row.name, f.Name, other), f.More)
				if len(found) > 0 {
					names, bars = append(names, row.name+": "+f.Name), append(bars, spreadOf(found).median)
				}
			}
		}
		if len(bars) == 0 {
			continue
		}
		c := chart{"images/performance-" + other + ".svg", "Bellwether to " + systemNames[other] + ", how many times better, median", nil}
		if c.svg, err = barsOf(c.title, names, bars); err != nil {
			return nil, err
		}
		drawn = append(drawn, c)
	}
	return drawn, nil
}

// curveCharts draws the curves.
func curveCharts(all []result) (drawn []chart, err error) {
	for i := range curves {
		c := &curves[i]
		for j, name := range c.drawn {
			var names []string
			var lines [][]float64
			unit := ""
			for _, system := range []string{zooKeeper, bellwether} {
				if line, u, found := lineOf(all, c, name, system); found {
					names, lines, unit = append(names, systemNames[system]), append(lines, line), u
				}
			}
			if len(lines) == 0 {
				continue
			}
			d := chart{fmt.Sprintf("images/curve-%s-%d.svg", c.name, j+1), fmt.Sprintf("%s in %s, by number of %s", name, unit, c.item), nil}
			if d.svg, err = linesOf(d.title, c.points, names, lines); err != nil {
				return nil, err
			}
			drawn = append(drawn, d)
		}
	}
	return drawn, nil
}

// lineOf returns the medians of a figure for all points of a curve, and its unit. A point without a positive value has
// no place on a logarithmic axis, and is left out.
func lineOf(all []result, c *curve, name, system string) (line []float64, unit string, found bool) {
	for _, n := range c.points {
		value := charts.GetNullValue()
		var known []float64
		for _, v := range values(all, c.pointName(n), name, system) {
			known = append(known, v)
		}
		if len(known) > 0 && spreadOf(known).median > 0 {
			value, found = spreadOf(known).median, true
		}
		line = append(line, value)
		for _, f := range figureNames(all, c.pointName(n)) {
			if f.Name == name {
				unit = f.Unit
			}
		}
	}
	if unit == "/s" {
		unit = "operations per second"
	}
	return line, unit, found
}

// linesOf draws lines over points, whose distances are those of their labels. The library has no logarithmic axis, so it
// gets logarithms, and labels that are powers of ten.
func linesOf(title string, points []int, names []string, lines [][]float64) ([]byte, error) {
	least, most := math.Inf(1), math.Inf(-1)
	logs := make([][]float64, len(lines))
	for i, line := range lines {
		for _, v := range line {
			if v != charts.GetNullValue() {
				v = math.Log10(v)
				least, most = min(least, v), max(most, v)
			}
			logs[i] = append(logs[i], v)
		}
	}
	least, most = math.Floor(least), math.Ceil(most)
	most = max(most, least+1)
	var labels []string
	for _, n := range points {
		labels = append(labels, number(float64(n)))
	}
	opt := charts.NewLineChartOptionWithData(logs)
	opt.Title.Text, opt.Title.FontStyle.FontSize = title, 12
	opt.Padding = charts.NewBox(10, 10, 30, 10)
	opt.Legend.SeriesNames, opt.Legend.Offset = names, charts.OffsetStr{Top: "24"}
	opt.XAxis.Labels, opt.XAxis.LabelCount, opt.XAxis.BoundaryGap = labels, len(labels), charts.Ptr(true)
	opt.YAxis[0].Min, opt.YAxis[0].Max, opt.YAxis[0].LabelCount = charts.Ptr(least), charts.Ptr(most), int(most-least)+1
	opt.YAxis[0].RangeValuePaddingScale = charts.Ptr(0.0)
	opt.YAxis[0].ValueFormatter = powerOfTen
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: 500, Height: 320})
	if err := p.LineChart(opt); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return p.Bytes()
}

// powerOfTen shows the value of a logarithm.
func powerOfTen(v float64) string { return number(math.Pow(10, v)) }

// barHeight is the height of a bar with its space, in pixels.
const barHeight = 28

// labelGap stands behind each label, because many browsers draw the text wider than the library has measured it.
const labelGap = "\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0"

// barsOf draws horizontal bars, the first one at the top.
func barsOf(title string, names []string, bars []float64) ([]byte, error) {
	names, bars = slices.Clone(names), slices.Clone(bars)
	for i := range names {
		names[i] += labelGap
	}
	slices.Reverse(names) // the library draws the first one at the bottom
	slices.Reverse(bars)
	opt := charts.NewBarChartOptionWithData([][]float64{bars})
	opt.Title.Text, opt.Title.FontStyle.FontSize = title, 12
	opt.Horizontal, opt.CategoryAxis.Labels = true, names
	opt.SeriesList[0].Label.Show = charts.Ptr(true)
	opt.SeriesList[0].Label.ValueFormatter = number
	opt.ValueFormatter = number
	opt.Legend.Show = charts.Ptr(false)
	opt.Padding = charts.NewBox(10, 10, 40, 10)
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: 800, Height: 90 + barHeight*len(bars)})
	if err := p.BarChart(opt); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return p.Bytes()
}
