package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spread is the median, minimum and maximum of values.
type spread struct{ median, least, most float64 }

// spreadOf returns the spread of at least one value.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// values returns a figure of a system in all pairs, by pair.
func values(all []result, row, name, system string) map[int]float64 {
	found := map[int]float64{}
	for _, r := range all {
		for _, f := range r.Figures {
			if r.Row == row && r.System == system && f.Name == name {
				found[r.Pair] = f.Value
			}
		}
	}
	return found
}

// ratios returns for each pair how many times better a is than b: a's value divided by b's if more is
// better, and the reverse if less is better. Pairs with a zero have none.
func ratios(a, b map[int]float64, more bool) (all []float64) {
	for pair, x := range a {
		y, ok := b[pair]
		if !more {
			x, y = y, x
		}
		if ok && x > 0 && y > 0 {
			all = append(all, x/y)
		}
	}
	return all
}

// figureNames returns the names of a row's figures in order, with the first figure of each name.
func figureNames(all []result, row string) (names []figure) {
	for _, r := range all {
		for _, f := range r.Figures {
			if r.Row == row && !slices.ContainsFunc(names, func(g figure) bool { return g.Name == f.Name }) {
				names = append(names, f)
			}
		}
	}
	return names
}

// tableOf returns the table of the results, in Markdown.
func tableOf(all []result) string {
	var b strings.Builder
	b.WriteString("| work | figure | Apache ZooKeeper | Bellwether | Bellwether to ZooKeeper | etcd | Bellwether to etcd |\n|---|---|---|---|---|---|---|\n")
	for _, row := range rows {
		title := row.title
		for _, f := range figureNames(all, row.name) {
			own := values(all, row.name, f.Name, bellwether)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", title, f.Name,
				cell(values(all, row.name, f.Name, zooKeeper), f.Unit), cell(own, f.Unit), ratioCell(all, row.name, f, zooKeeper),
				cell(values(all, row.name, f.Name, etcd), f.Unit), ratioCell(all, row.name, f, etcd))
			title = ""
		}
	}
	return b.String()
}

// cell shows the median of a figure.
func cell(values map[int]float64, unit string) string {
	if len(values) == 0 {
		return ""
	}
	var all []float64
	for _, v := range values {
		all = append(all, v)
	}
	text := number(spreadOf(all).median)
	if unit == "/s" {
		return text + unit
	}
	return text + " " + unit
}

// ratioCell shows the ratio of Bellwether to another system.
func ratioCell(all []result, row string, f figure, other string) string {
	found := ratios(values(all, row, f.Name, bellwether), values(all, row, f.Name, other), f.More)
	if len(found) == 0 || f.Name == clientCPU {
		return ""
	}
	s := spreadOf(found)
	return fmt.Sprintf("**%s** (%s to %s)", number(s.median), number(s.least), number(s.most))
}

// number shows a number with three digits, or all digits before the point.
func number(v float64) string {
	if v >= 1000 {
		digits := strconv.FormatFloat(v, 'f', 0, 64)
		for at := len(digits) - 3; at > 0; at -= 3 {
			digits = digits[:at] + "," + digits[at:]
		}
		return digits
	}
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if strings.Contains(text, "e") {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return text
}

// machineOf returns the table of what the machine allows.
func machineOf(all []result) string {
	var b strings.Builder
	b.WriteString("| what the machine allows | median (minimum to maximum) |\n|---|---|\n")
	for _, f := range figureNames(all, ceilingRow) {
		var found []float64
		for _, v := range values(all, ceilingRow, f.Name, machine) {
			found = append(found, v)
		}
		s := spreadOf(found)
		fmt.Fprintf(&b, "| %s | %s %s (%s to %s) |\n", f.Name, number(s.median), f.Unit, number(s.least), number(s.most))
	}
	return b.String()
}

// section is a generated part of the page. A run writes the sections of which it has measured something.
type section struct {
	name   string
	rows   func() []row
	charts func(all []result) ([]chart, error)
	text   func(all []result, drawn []chart) string
}

var sections = []section{
	{"side by side", func() []row { return append(rows[:len(rows):len(rows)], row{name: ceilingRow}) }, ratioCharts, sideBySide},
	{"curves", curveRows, curveCharts, curvesOf},
	{"other work", workRows, func([]result) ([]chart, error) { return nil, nil }, worksOf},
}

// of returns the results of the section's rows.
func (s section) of(all []result) (own []result) {
	known := s.rows()
	for _, r := range all {
		if slices.ContainsFunc(known, func(k row) bool { return k.name == r.Row }) {
			own = append(own, r)
		}
	}
	return own
}

// begin and end return the lines of the page between which the section is.
func (s section) begin() string {
	return "<!-- make bench-report writes from here on: " + s.name + " -->"
}
func (s section) end() string { return "<!-- to here: " + s.name + " -->" }

// replaced returns the page with another text of the section.
func (s section) replaced(page, text string) (string, error) {
	head, rest, begun := strings.Cut(page, s.begin())
	_, tail, ended := strings.Cut(rest, s.end())
	if !begun || !ended {
		return "", fmt.Errorf("the page needs the lines %q and, behind it, %q; the section comes between them", s.begin(), s.end())
	}
	return head + s.begin() + "\n\n" + strings.TrimSpace(text) + "\n\n" + s.end() + tail, nil
}

// circumstances returns when, on what and of what the results are.
func circumstances(all []result) string {
	s := all[0].Settings
	return fmt.Sprintf("Date: %s. Machine: %s. Versions: %s. The heap of Apache ZooKeeper: %s.", s.Date, s.Machine, s.Versions, s.Heap)
}

// pairsOf returns the number of pairs.
func pairsOf(all []result) int {
	pairs := map[int]bool{}
	for _, r := range all {
		pairs[r.Pair] = true
	}
	return len(pairs)
}

// sideBySide returns the section with the rows: circumstances, charts, and tables.
func sideBySide(all []result, drawn []chart) string {
	s := all[0].Settings
	var b strings.Builder
	fmt.Fprintf(&b, "## Side by side\n\n%s Each measurement begins after %s of warm-up and takes %s,\n"+
		"if it does not say something else. The servers and the clients share the machine.\n\n    make bench-report PAIRS=%d DURATION=%s\n\n",
		circumstances(all), s.Warmup, s.Duration, pairsOf(all), s.Duration)
	b.WriteString("Each pair measures Apache ZooKeeper, then Bellwether, then etcd, with new servers and directories. The table shows medians over the pairs. " +
		"A ratio says how\nmany times better Bellwether was than the other one in the same pair: median (minimum to maximum). More than 1 means that Bellwether was better.\n\n")
	for _, c := range drawn {
		fmt.Fprintf(&b, "![%s](%s)\n\n", c.title, c.file)
	}
	b.WriteString(tableOf(all) + "\n" + machineOf(all) + "\nWhat etcd does in a row:\n\n")
	for _, row := range rows {
		if row.etcd != nil && len(values(all, row.name, figureName(all, row.name), etcd)) > 0 {
			fmt.Fprintf(&b, "- %s: %s.\n", row.title, row.note)
		}
	}
	return b.String()
}

// figureName returns the name of a row's first figure.
func figureName(all []result, row string) string {
	if names := figureNames(all, row); len(names) > 0 {
		return names[0].Name
	}
	return ""
}
