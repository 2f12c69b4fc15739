package main

import (
	"context"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-analyze/charts"
)

// growing results: three points of the curve of watches, of which the first one has no growth, and one was not measured.
func someCurves() []result {
	s := some()[0].Settings
	f := func(memory, each, p99 float64) []figure {
		return []figure{{memoryAll, "MiB", memory, false}, {"growth of it for each", "bytes", each, false}, {"setData p99", "µs", p99, false}}
	}
	return []result{
		{"watched-10000", 0, zooKeeper, s, f(100, 500, 900), "", 1}, {"watched-10000", 0, bellwether, s, f(10, 0, 90), "", 1},
		{"watched-100000", 0, zooKeeper, s, f(1000, 400, 1000), "", 1}, {"watched-100000", 0, bellwether, s, f(100, 40, 100), "", 1},
		{"watched-100000", 1, zooKeeper, s, f(3000, 400, 1000), "", 1},
		{"watched-1000000", 0, zooKeeper, s, nil, "the machine is too small", 0}, {"watched-1000000", 0, bellwether, s, f(1000, 40, 0), "", 1},
	}
}

// TestCurveTable shows a column for each point, a row for each figure of each system, medians, ratios, empty cells for what was
// not measured, and the reason.
func TestCurveTable(t *testing.T) {
	c := &curves[slices.IndexFunc(curves, func(c curve) bool { return c.name == "watched" })]
	got := tableOfCurve(someCurves(), c)
	for _, want := range []string{
		"| figure | server | 10,000 | 100,000 | 1,000,000 |\n|---|---|---|---|---|\n",
		"| resident memory | Apache ZooKeeper | 100 MiB | 2,000 MiB |  |\n|  | Bellwether | 10 MiB | 100 MiB | 1,000 MiB |\n" +
			"|  | ratio | **10** (10 to 10) | **10** (10 to 10) |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if got, want := skippedOf(someCurves(), c), "- Apache ZooKeeper, 1,000,000 watches: not measured. The machine is too small.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := tableOfCurve(some(), c); got != "" {
		t.Errorf("a table without results: %s", got)
	}
}

// TestCurveCharts shows that a chart is drawn for each figure that a curve names and that was measured, that its axis shows
// powers of ten, and that equal factors have equal distances.
func TestCurveCharts(t *testing.T) {
	drawn, err := curveCharts(someCurves())
	if err != nil || len(drawn) != 2 || drawn[0].file != "images/curve-watched-1.svg" || drawn[1].file != "images/curve-watched-3.svg" {
		t.Fatal(len(drawn), err)
	}
	for i, want := range [][]string{
		{"resident memory in MiB, by number of watches", "Apache ZooKeeper", "Bellwether", ">10,000<", ">1,000,000<", ">10<", ">100<", ">1,000<"},
		{"setData p99 in µs", ">10<", ">100<", ">1,000<"},
	} {
		svg := string(drawn[i].svg)
		if err := xml.Unmarshal(drawn[i].svg, new(struct{ XMLName xml.Name })); err != nil {
			t.Error(err)
		}
		for _, text := range want {
			if !strings.Contains(svg, text) {
				t.Errorf("%s: %q is missing", drawn[i].file, text)
			}
		}
	}
	line, _, _ := lineOf(someCurves(), &curves[1], "setData p99", bellwether)
	if line[2] != charts.GetNullValue() {
		t.Errorf("0 has a place on a logarithmic axis: %v", line)
	}
	svg, err := linesOf("t", []int{1, 10, 100}, []string{"a"}, [][]float64{{1, 10, 100}})
	if err != nil {
		t.Fatal(err)
	}
	var ys []float64
	for _, m := range regexp.MustCompile(`<circle cx="\d+" cy="(\d+)"`).FindAllStringSubmatch(string(svg), -1) {
		y, _ := strconv.ParseFloat(m[1], 64)
		ys = append(ys, y)
	}
	if ys = slices.Compact(ys); len(ys) < 3 {
		t.Fatalf("heights %v in %s", ys, svg)
	}
	ys = ys[len(ys)-3:] // those before belong to the legend
	if up, more := ys[0]-ys[1], ys[1]-ys[2]; up < 50 || up-more > 2 || more-up > 2 {
		t.Errorf("heights %v", ys)
	}
}

// TestCurveSection shows that the section has the curves with their charts, says how it was made, and has no part of what
// was not measured.
func TestCurveSection(t *testing.T) {
	drawn, err := curveCharts(someCurves())
	if err != nil {
		t.Fatal(err)
	}
	text := curvesOf(someCurves(), drawn)
	at := 0
	for _, want := range []string{"## What grows with what", "Date: 2026-01-02.", "ROWS=watched PAIRS=2 CURVES=2", "### Watches", "ROWS=watched\n", "](images/curve-watched-1.svg)",
		"| figure | server | 10,000 |", "not measured. The machine"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or in the wrong place, in\n%s", want, text)
		}
		at += i
	}
	if strings.Contains(text, "ROWS=znodes") {
		t.Error("a curve is there that was not measured")
	}
}

// someWorks returns results of two pairs of a work.
func someWorks() []result {
	s := some()[0].Settings
	f := func(ratio, with float64) []figure {
		return []figure{{withP999, "ms", with, false}, {ratioP999, "", ratio, false}, {"snapshots begun", "", 3, true}}
	}
	return []result{
		{"with-snapshot", 0, zooKeeper, s, f(5, 10), "", 1}, {"with-snapshot", 0, bellwether, s, f(1, 2), "", 1},
		{"with-snapshot", 1, zooKeeper, s, f(3, 20), "", 1},
	}
}

// TestWorkTable shows medians, and the spread of ratios.
func TestWorkTable(t *testing.T) {
	got := worksOf(someWorks(), nil)
	for _, want := range []string{
		"| " + works[0].title + " | p99.9 with | 15 ms | 2 ms |\n",
		"|  | p99.9, with to without | **4** (3 to 5) | **1** (1 to 1) |\n",
		"|  | snapshots begun | 3 | 3 |\n", "Date: 2026-01-02.", "ROWS=with-snapshot PAIRS=2 DURATION=10s\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestCurveIsChosen shows that the name of a curve means its points, and that a point can be chosen alone.
func TestCurveIsChosen(t *testing.T) {
	chosen, err := choose("watched,znodes-10000000,with-expiry")
	if err != nil || len(chosen) != 5 || chosen[2].name != "watched-1000000" || chosen[3].name != "znodes-10000000" {
		t.Errorf("%d rows, %v", len(chosen), err)
	}
	if _, err := choose("watch"); err == nil || !strings.Contains(err.Error(), "watched, connected") || strings.Contains(err.Error(), "watched-10000") {
		t.Error(err)
	}
}

// TestTooSmall shows that what needs more memory than there is is not measured but recorded with the reason, as is a point
// beyond the largest one of a system.
func TestTooSmall(t *testing.T) {
	r := &run{heap: "2g", systems: zooKeeper}
	var skip *skipError
	if err := r.fits(bellwether, 1<<50); !errors.As(err, &skip) || !strings.Contains(skip.why, "the machine has") {
		t.Error(err)
	}
	if err := r.fits(bellwether, -baseMemory); err != nil {
		t.Error(err)
	}
	chosen, err := choose("znodes-10000000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chosen[0].zk(t.Context(), r, zooKeeper); !errors.As(err, &skip) || !strings.Contains(skip.why, "at most 1,000,000 znodes") {
		t.Error(err)
	}
	r.results = t.TempDir() + "/results"
	for range 2 {
		err := r.once(context.Background(), "znodes-10000000", 0, zooKeeper, func() ([]figure, error) { return nil, &skipError{"small"} })
		if err != nil {
			t.Fatal(err)
		}
	}
	if all, err := readResults(r.results); err != nil || len(all) != 1 || all[0].Skipped != "small" {
		t.Errorf("%+v, %v", all, err)
	}
	for heap, want := range map[string]int{"2g": 2 << 30, "512m": 512 << 20, "?": 0} {
		if r.heap = heap; r.heapBytes() != want {
			t.Errorf("%s: %d", heap, r.heapBytes())
		}
	}
}

// TestCollections shows which lines of a log are collections, with lines of Go 1.26 and OpenJDK 17.
func TestCollections(t *testing.T) {
	for line, want := range map[string]bool{
		"gc 7 @0.089s 1%: 0.031+1.2+0.021 ms clock, 0.062+0.4/1.0/0+0.043 ms cpu, 4->4->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P": true,
		"[0.213s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 23M->3M(256M) 2.551ms":                                      true,
		"[0.213s][info][gc] GC(1) Concurrent Mark Cycle":                                                                                 false,
		"[0.010s][info][gc] Using G1": false,
		"level=WARN msg=\"gc\"":       false,
	} {
		if isCollection(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
