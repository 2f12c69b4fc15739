package main

import (
	"fmt"
	"slices"

	"github.com/go-analyze/charts"
)

// chart is a drawing of the ratios of Bellwether to another system.
type chart struct {
	file, title string
	svg         []byte
}

// chartsOf draws the median ratios of the first figure of each row, to each other system.
func chartsOf(all []result) (drawn []chart, err error) {
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

// barHeight is the height of a bar with its space, in pixels.
const barHeight = 28

// barsOf draws horizontal bars, the first one at the top.
func barsOf(title string, names []string, bars []float64) ([]byte, error) {
	names, bars = slices.Clone(names), slices.Clone(bars)
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
