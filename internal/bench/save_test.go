package bench

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func someReports() []*Report {
	l := newLatencies()
	for i := range 1000 {
		l.record(time.Duration(i+1) * time.Millisecond)
	}
	return []*Report{reportOf("mixed: reads", 10*time.Second, l), {Kind: "memory", Figures: []Figure{{"bytes per znode", 300}}}}
}

// TestSave shows that other programs can read the files of a run, and that no run replaces the
// files of another.
func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "results")
	began := time.Now()
	files, err := CreateFiles(dir, "mixed", began)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CreateFiles(dir, "mixed", began); !errors.Is(err, os.ErrExist) {
		t.Errorf("the same files again: %v", err)
	}
	reports := someReports()
	result := NewResult(began, reports)
	result.Settings = map[string]string{"keys": "5"}
	if err := files.Save(result, reports); err != nil {
		t.Fatal(err)
	}
	read := func(ending string) string {
		b, err := os.ReadFile(files.base + ending)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var again Result
	if err := json.Unmarshal([]byte(read(".json")), &again); err != nil || again.Reports[0].P50US < 499_000 || again.Reports[1].Figures[0].Value != 300 || again.Settings["keys"] != "5" || again.Cores < 1 {
		t.Errorf("%v: %+v", err, again)
	}
	if n := len(again.Reports[0].Percents); n != len(percents) {
		t.Errorf("%d percentiles", n)
	}
	log := hdrhistogram.NewHistogramLogReader(strings.NewReader(read(".hlog")))
	h, err := log.NextIntervalHistogram()
	if err != nil || h == nil || h.Tag() != "mixed--reads" || h.TotalCount() != 1000 || h.Max() < time.Second.Nanoseconds() {
		t.Errorf("%v: %+v", err, h)
	}
	if more, err := log.NextIntervalHistogram(); more != nil || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("a second histogram: %v, %v", more, err)
	}
	svg := read(".svg")
	if err := xml.Unmarshal([]byte(svg), new(struct{ XMLName xml.Name })); err != nil || !strings.Contains(svg, "mixed: reads (100/s)") || !strings.Contains(svg, "p99.99") {
		t.Errorf("%v: %.300s", err, svg)
	}
}

// TestReportOfNothing shows that a measurement in which no operation was completed has no latencies.
func TestReportOfNothing(t *testing.T) {
	r := reportOf("election", 100*time.Millisecond, newLatencies())
	if want := "election: 0/s, 0 in 100ms; no latency, because nothing was measured"; r.String() != want {
		t.Errorf("%q, want %q", r, want)
	}
	if b, err := json.Marshal(r.JSON()); err != nil || strings.Contains(string(b), "p50_us") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestChartWithoutLatencies shows that reports without latencies have a chart, too.
func TestChartWithoutLatencies(t *testing.T) {
	if svg, err := chartOf(someReports()[1:]); err != nil || !strings.Contains(string(svg), "no latencies") {
		t.Errorf("%v: %.300s", err, svg)
	}
}
