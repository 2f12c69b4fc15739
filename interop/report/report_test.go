package main

import (
	"context"
	"encoding/xml"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// some returns results of two pairs.
func some() []result {
	f := func(throughput, p50 float64) []figure {
		return []figure{{"throughput", "/s", throughput, true}, {"p50", "µs", p50, false}, {clientCPU, "µs", 2, false}}
	}
	s := settings{Date: "2026-01-02", Machine: "a machine", Versions: "1", Warmup: "5s", Duration: "10s", Heap: "2g"}
	return []result{
		{"read", 0, zooKeeper, s, f(1000, 300), "", 0}, {"read", 0, bellwether, s, f(3000, 100), "", 0}, {"read", 0, etcd, s, f(500, 200), "", 0},
		{"read", 1, zooKeeper, s, f(2000, 100), "", 0}, {"read", 1, bellwether, s, f(2000, 50), "", 0},
		{"ping", 0, bellwether, s, []figure{{"p50", "µs", 0.25, false}}, "", 0},
		{ceilingRow, 0, machine, s, []figure{{"echo", "/s", 123456, true}}, "", 0},
	}
}

// TestSpread shows the median of odd and even numbers of values.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{5}, spread{5, 5, 5}},
		{[]float64{9, 1, 2}, spread{2, 1, 9}},
		{[]float64{4, 1, 2, 9}, spread{3, 1, 9}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// TestRatios shows that a ratio compares the figures of one pair, that more than 1 is better in both
// directions, and that pairs with one figure or with a zero have none.
func TestRatios(t *testing.T) {
	a, b := map[int]float64{0: 6, 1: 4, 2: 9, 3: 0}, map[int]float64{0: 3, 1: 8, 3: 5, 4: 7}
	for more, want := range map[bool][]float64{true: {0.5, 2}, false: {0.5, 2}} {
		got := ratios(a, b, more)
		if slices.Sort(got); !slices.EqualFunc(got, want, func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }) {
			t.Errorf("more is better: %v: %v, want %v", more, got, want)
		}
	}
	if got := ratios(map[int]float64{0: 3}, map[int]float64{0: 6}, true); got[0] != 0.5 {
		t.Error(got)
	}
	if got := ratios(map[int]float64{0: 3}, map[int]float64{0: 6}, false); got[0] != 2 {
		t.Error(got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.1234: "0.123", 12.345: "12.3", 999.4: "999", 1000: "1,000", 1234567.8: "1,234,568", 0.00001: "0.00001"} {
		if got := number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// TestTable shows cells with medians, ratios with their spread, no ratio for the client, and empty
// cells for what was not measured.
func TestTable(t *testing.T) {
	got := tableOf(some())
	for _, want := range []string{
		"| getData, 100 bytes, 32 connections × 16, standalone | throughput | 1,500/s | 2,500/s | **2** (1 to 3) | 500/s | **6** (6 to 6) |\n",
		"|  | p50 | 200 µs | 75 µs | **2.5** (2 to 3) | 200 µs | **2** (2 to 2) |\n",
		"|  | " + clientCPU + " | 2 µs | 2 µs |  | 2 µs |  |\n",
		"| ping of a client at a follower, three idle servers | p50 |  | 0.25 µs |  |  |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if n := strings.Count(got, "\n"); n != 6 {
		t.Errorf("%d lines", n)
	}
	if got := machineOf(some()); !strings.Contains(got, "| echo | 123,456 /s (123,456 to 123,456) |") {
		t.Error(got)
	}
}

// TestSection shows that the section of the rows says how it was made.
func TestSection(t *testing.T) {
	drawn, err := ratioCharts(some())
	if err != nil || len(drawn) != 2 {
		t.Fatal(len(drawn), err)
	}
	for _, c := range drawn {
		if err := xml.Unmarshal(c.svg, new(struct{ XMLName xml.Name })); err != nil || !strings.Contains(string(c.svg), "read: throughput") {
			t.Errorf("%s: %v", c.file, err)
		}
	}
	text := sideBySide(some(), drawn)
	for _, want := range []string{"Date: 2026-01-02. Machine: a machine. Versions: 1.", "PAIRS=2 DURATION=10s", "after 5s of warm-up", "](images/performance-etcd.svg)", "standalone: serializable gets, which"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "puts of new keys") {
		t.Error("the page says what etcd does in a row that was not measured")
	}
}

// TestReplaced shows that a section replaces only itself, and that a page without its place is refused.
func TestReplaced(t *testing.T) {
	s, other := sections[0], sections[1]
	empty := "# Performance\n\nby hand\n" + s.begin() + s.end() + "\nmore\n" + other.begin() + "\n\nkept\n\n" + other.end() + "\n"
	page, err := s.replaced(empty, "\nold\n")
	if err == nil {
		page, err = s.replaced(page, "new")
	}
	if want := strings.Replace(empty, s.begin(), s.begin()+"\n\nnew\n\n", 1); err != nil || page != want {
		t.Errorf("%q, %v; want %q", page, err, want)
	}
	for _, bad := range []string{"", s.begin(), s.end() + s.begin()} {
		if _, err := s.replaced(bad, "new"); err == nil || !strings.Contains(err.Error(), "here: side by side -->") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestWriteSections shows that a run writes the sections of which there are results, with their charts, and no others. The
// page of this project has a place for each.
func TestWriteSections(t *testing.T) {
	const old = "from another day"
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, s := range sections {
		if page, err = s.replaced(page, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		all         []result
		kept, files int
		want        string
	}{
		{some(), 2, 2, "## Side by side"},
		{someCurves(), 2, 2, "## What grows with what"},
		{someWorks(), 2, 0, "## Latency of writes while other work goes on"},
		{slices.Concat(some(), someCurves(), someWorks()), 0, 4, "## What grows with what"},
	} {
		dir := t.TempDir()
		r := &run{results: filepath.Join(dir, "results"), docs: dir, settings: some()[0].Settings}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "performance.md"), []byte(page), 0o644), os.Mkdir(filepath.Join(dir, "images"), 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, one := range c.all {
			if err := appendResult(r.results, one); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.write(); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(filepath.Join(dir, "performance.md"))
		if got := strings.Count(string(written), old); err != nil || got != c.kept || !strings.Contains(string(written), c.want) {
			t.Errorf("%v, %d sections were kept, want %d and %q:\n%s", err, got, c.kept, c.want, written)
		}
		if charts, err := os.ReadDir(filepath.Join(dir, "images")); err != nil || len(charts) != c.files {
			t.Errorf("%d charts, %v; want %d", len(charts), err, c.files)
		}
	}
}

// TestResultsAreResumed shows that a run finds the results of an interrupted one, behind a line that was
// not written completely too, on another day, and not those of other settings.
func TestResultsAreResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	if all, err := readResults(path); err != nil || all != nil {
		t.Error(all, err)
	}
	for i, r := range some() {
		if i == 1 {
			if err := os.WriteFile(path, []byte("\n{\"row\":\"read\",\"pa"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := appendResult(path, r); err != nil {
			t.Fatal(err)
		}
	}
	all, err := readResults(path)
	if err != nil || len(all) != len(some())-1 {
		t.Fatal(len(all), err)
	}
	s := some()[0].Settings
	s.Date = "2026-01-03"
	if r := find(all, "read", 1, bellwether, s); r == nil || r.Figures[0].Value != 2000 {
		t.Errorf("%+v", r)
	}
	if find(all, "read", 2, bellwether, s) != nil || find(all, "read", 1, etcd, s) != nil {
		t.Error("a measurement is found that was not made")
	}
	s.Duration = "1s"
	if find(all, "read", 1, bellwether, s) != nil {
		t.Error("a result of other settings is used")
	}
}

// TestBadResults shows that a line that is no result is named, wherever it is, and that nothing is left out but what an
// interrupted run has written of its last line.
func TestBadResults(t *testing.T) {
	const good = "\n{\"row\":\"read\"}\n"
	for text, want := range map[string]string{
		good + good:                       "",
		good + "\n{\"row\":\"re":          "",
		good + "\n{\"row\":\"re" + good:   "",
		good + "\n{\"row\":\"re\n" + good: "results:4: the line is no result",
		good + "\nmore":                   "results:4: ",
		good + "\n{\"row\":5}" + good:     "results:4: ",
		"a diary" + good:                  "results:1: ",
	} {
		path := filepath.Join(t.TempDir(), "results")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := readResults(path)
		if n := strings.Count(text, good); want == "" && (err != nil || len(all) != n) {
			t.Errorf("%q: %d results, %v; want %d", text, len(all), err, n)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestBadCommandLine shows that a wrong command line is refused before anything is built or measured.
func TestBadCommandLine(t *testing.T) {
	for _, c := range []struct {
		change    func(*run)
		arguments []string
		want      string
	}{
		{func(*run) {}, nil, ""},
		{func(*run) {}, []string{"read"}, `"read": all settings are flags`},
		{func(r *run) { r.systems = "zookeeper,zookeper" }, nil, `-systems: no system "zookeper"; there are zookeeper, bellwether, etcd`},
		{func(r *run) { r.systems = "" }, nil, `-systems: no system ""`},
		{func(r *run) { r.pairs = 0 }, nil, "-pairs 0: want 1 or more"},
		{func(r *run) { r.divided = 0 }, nil, "-divided 0: want 1 or more"},
		{func(r *run) { r.curvePairs = -1 }, nil, "-curve-pairs -1"},
		{func(r *run) { r.duration = 0 }, nil, "-duration 0s: want more than 0"},
		{func(r *run) { r.curveDuration = -time.Second }, nil, "-curve-duration -1s: want more than 0"},
		{func(r *run) { r.rows = "reed" }, nil, `no row "reed"`},
	} {
		r := &run{systems: "zookeeper,bellwether", pairs: 1, divided: 1, duration: time.Second, curveDuration: time.Second}
		c.change(r)
		err := r.check(c.arguments)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestChoose shows that rows have different names, and that a wrong name lists them.
func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != len(allRows()) {
		t.Error(len(all), err)
	}
	names := map[string]bool{}
	for _, r := range allRows() {
		if names[r.name] || (r.etcd == nil) != (r.note == "") {
			t.Errorf("row %s", r.name)
		}
		names[r.name] = true
	}
	if chosen, err := choose("ping,read"); err != nil || len(chosen) != 2 || chosen[1].name != "read" {
		t.Error(chosen, err)
	}
	if _, err := choose("reed"); err == nil || !strings.Contains(err.Error(), "there are read, read32") {
		t.Error(err)
	}
}

// TestCommit shows that the version of the program is one word or a few, also in a copy without history.
func TestCommit(t *testing.T) {
	if got := commit(); got == "" || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
}

// TestPairs shows how often each row is measured: in each pair, a curve in the first ones, and once what only Bellwether does.
func TestPairs(t *testing.T) {
	measured := map[string]int{}
	measure := func(name string) func(context.Context, *run, string) ([]figure, error) {
		return func(_ context.Context, _ *run, system string) ([]figure, error) {
			measured[name+" "+system]++
			return nil, nil
		}
	}
	r := &run{pairs: 3, curvePairs: 2, systems: zooKeeper + "," + bellwether, results: filepath.Join(t.TempDir(), "results.jsonl")}
	chosen := []row{{name: "each", zk: measure("each")}, {name: "point", zk: measure("point"), curve: "a curve"}, {name: "large", zk: measure("large"), curve: "a curve", alone: true}}
	if err := r.measureAll(t.Context(), chosen); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"each": 3, "point": 2, "large": 1} {
		for _, system := range []string{zooKeeper, bellwether} {
			if got := measured[name+" "+system]; got != want {
				t.Errorf("%s of %s was measured %d times, want %d", name, system, got, want)
			}
		}
	}
	for _, row := range curveRows() {
		if row.alone != (row.name == "znodes-10000000") {
			t.Errorf("%s: measured once: %v", row.name, row.alone)
		}
	}
}
