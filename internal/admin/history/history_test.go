package history

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/store"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// filled returns a history of n readings: 10 requests a second that take 2 ms each.
func filled(n int) *History {
	h := New(nil)
	for i := range n {
		v := float64(i)
		h.add(reading{at: noon.Add(time.Duration(i) * Every), lag: math.NaN(), heap: 5 << 20, resident: math.NaN(), metrics: map[string]float64{
			"packets_received": 50 * v, "outstanding_requests": v, "sum_readlatency": 80 * v, "cnt_readlatency": 40 * v,
			"sum_updatelatency": 20 * v, "cnt_updatelatency": 10 * v, "global_sessions": 3, "local_sessions": 1, "looking_count": v, "znode_count": 5,
		}})
	}
	return h
}

func named(t *testing.T, all []Series, name string) *Series {
	t.Helper()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	t.Fatalf("no series %s", name)
	return nil
}

// TestFigures: rates and means cover the time between two readings, so the first reading has
// none. A value that is not known is missing.
func TestFigures(t *testing.T) {
	all := filled(3).Series()
	for name, want := range map[string]float64{"requests": 10, "latency": 2, "outstanding": 2, "sessions": 4, "elections": 12, "heap": 5, "znodes": 5} {
		s := named(t, all, name)
		if s.Last == nil || math.Abs(*s.Last-want) > 1e-9 || len(s.Values) != 3 || s.EverySeconds != 5 || !s.From.Equal(noon) {
			t.Errorf("%s: %s, want %v last", name, s.Text(), want)
		}
	}
	if s := named(t, all, "requests"); s.Values[0] != nil || s.Values[1] == nil {
		t.Errorf("requests: %v", s.Values)
	}
	for _, name := range []string{"lag", "resident", "fsync", "watches"} {
		if s := named(t, all, name); s.Last != nil || s.Minimum != nil || !strings.HasSuffix(s.Text(), "nothing is known yet") {
			t.Errorf("%s: %s", name, s.Text())
		}
	}
}

// TestResetCounterGivesNoRate: after srst has set the counters to 0, no rate is shown.
func TestResetCounterGivesNoRate(t *testing.T) {
	h := filled(3)
	h.add(reading{at: noon.Add(3 * Every), metrics: map[string]float64{"packets_received": 7, "sum_readlatency": 1, "cnt_readlatency": 1}})
	all := h.Series()
	for _, name := range []string{"requests", "latency"} {
		if s := named(t, all, name); s.Values[3] != nil {
			t.Errorf("%s: %v", name, *s.Values[3])
		}
	}
}

// TestRunReadsAServer: the figures of a server that runs are known, except for rates and
// for what only a leader knows; Run ends with its context.
func TestRunReadsAServer(t *testing.T) {
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h := New(s)
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	go func() {
		h.Run(ctx)
		ended <- nil
	}()
	for len(named(t, h.Series(), "znodes").Values) == 0 {
		time.Sleep(time.Millisecond) // a condition, not a delay: the first reading is under way
	}
	all := h.Series()
	for _, name := range []string{"outstanding", "connections", "sessions", "znodes", "watches", "heap"} {
		if s := named(t, all, name); s.Last == nil {
			t.Error(s.Text())
		}
	}
	if s := named(t, all, "znodes"); *s.Last < 5 {
		t.Error(s.Text())
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestRingKeepsAnHour: a ring keeps the newest values, never more than those of an hour.
func TestRingKeepsAnHour(t *testing.T) {
	s := named(t, filled(kept+10).Series(), "outstanding")
	if len(s.Values) != kept || *s.Minimum != 10 || *s.Last != float64(kept+9) || s.Until.Sub(s.From) != time.Hour-Every {
		t.Errorf("%d values, %s, from %v until %v", len(s.Values), s.Text(), s.From, s.Until)
	}
}

// TestSeriesAsJSON: what is not known is null.
func TestSeriesAsJSON(t *testing.T) {
	b, err := json.Marshal(filled(2).Series())
	if err != nil || !strings.Contains(string(b), `{"name":"requests","title":"Requests","unit":"per second"`) || !strings.Contains(string(b), `"values":[null,10],"minimum":10,"last":10,"maximum":10}`) {
		t.Errorf("%v %s", err, b)
	}
}

// TestChartsHaveClassesAndWords: a chart has no colour of its own, so that it fits both
// themes and a page whose policy forbids inline styles, and it says in words what it shows.
func TestChartsHaveClassesAndWords(t *testing.T) {
	for _, n := range []int{0, 1, 30, kept} {
		for _, s := range filled(n).Series() {
			svg, err := s.Chart()
			if err != nil {
				t.Fatal(err)
			}
			checkChart(t, &s, svg)
			if n == kept && s.Name == "requests" && (strings.Count(svg, `class="line"`) != 1 || !strings.Contains(svg, `class="area"`) ||
				!strings.Contains(svg, ">12:30</text>") || !strings.Contains(svg, "minimum 10, last 10, maximum 10")) {
				t.Errorf("requests: %s", svg)
			}
		}
	}
}

// TestGapsHaveNoArea: the area below a line is drawn only if the line has no gap.
func TestGapsHaveNoArea(t *testing.T) {
	for _, gap := range []bool{false, true} {
		s := Series{Name: "latency", Title: "Latency", Unit: "ms", Until: noon}
		for i := range 40 {
			v := 3.0
			if gap && i >= 10 {
				v = math.NaN()
			}
			s.append(v)
		}
		svg, err := s.Chart()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(svg, `class="area"`); got == gap {
			t.Errorf("gap %v, area %v", gap, got)
		}
	}
}

var class = regexp.MustCompile(`class="([^"]*)"`)

func checkChart(t interface{ Errorf(string, ...any) }, s *Series, svg string) {
	for _, bad := range []string{"style", "rgb", "#", "font-"} {
		if strings.Contains(svg, bad) {
			t.Errorf("%s: the chart contains %q:\n%s", s.Name, bad, svg)
		}
	}
	for _, m := range class.FindAllStringSubmatch(svg, -1) {
		switch m[1] {
		case "chart", "line", "area", "grid", "axis", "label":
		default:
			t.Errorf("%s: class %q", s.Name, m[1])
		}
	}
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			break
		}
	}
	if !strings.Contains(svg, `<title id="chart-`+s.Name+`">`+s.Title) {
		t.Errorf("%s: no title", s.Name)
	}
}

// TestAnyValuesCanBeDrawn: whatever the values are, the chart is well-formed.
func TestAnyValuesCanBeDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Series{Name: "any", Title: "Any", Unit: "ms", Until: noon}
		for _, v := range rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1e15), rapid.Just(math.NaN()), rapid.Just(0.0)), 0, kept).Draw(t, "values") {
			s.append(v)
		}
		svg, err := s.Chart()
		if err != nil {
			t.Fatal(err)
		}
		checkChart(t, &s, svg)
	})
}

// TestFigureIsShort: figures on axes and in texts have few digits.
func TestFigureIsShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0123: "0.01", 0.0021: "0.0021", 1.234: "1.23", 12.34: "12.3", 1234: "1234", 123456: "123k", 12345678: "12.3M"} {
		if got := Figure(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
