package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"bellwether/internal/bench"
	"bellwether/interop/target"
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = target.RemoveBinary() // a directory for temporary files is left
	os.Exit(code)
}

// TestRowsMeasure measures the first point of each curve, and each work beside writes, with small sizes and short times, on
// Bellwether: all figures that charts and tables name are there, and none is negative.
func TestRowsMeasure(t *testing.T) {
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{binary: binary, heap: "256m", warmup: 100 * time.Millisecond, duration: 500 * time.Millisecond, curveDuration: 300 * time.Millisecond, divided: 100, dir: t.TempDir()}
	for i := range curves {
		c := &curves[i]
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			chosen, err := choose(c.pointName(c.points[0]))
			if err != nil {
				t.Fatal(err)
			}
			figures, err := chosen[0].zk(t.Context(), r, bellwether)
			if err != nil {
				t.Fatal(err)
			}
			checkFigures(t, figures, c.drawn)
		})
	}
	for _, row := range workRows() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			figures, err := row.zk(t.Context(), r, bellwether)
			if err != nil {
				t.Fatal(err)
			}
			checkFigures(t, figures, []string{withoutP999, withP999, ratioP999, withoutMax, withMax})
		})
	}
}

func checkFigures(t *testing.T, figures []figure, names []string) {
	t.Helper()
	for _, name := range names {
		if i := slices.IndexFunc(figures, func(f figure) bool { return f.Name == name }); i < 0 || figures[i].Value < 0 {
			t.Errorf("%q is missing or negative in %+v", name, figures)
		}
	}
	for i, f := range figures {
		if slices.ContainsFunc(figures[:i], func(g figure) bool { return g.Name == f.Name }) {
			t.Errorf("%q is there twice", f.Name)
		}
	}
}

// TestDepartures shows that candidates which only wait never lead, that each other candidate leads once, and that nothing
// comes between them.
func TestDepartures(t *testing.T) {
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{binary: binary, duration: time.Second, dir: t.TempDir()}
	err = r.withServers(t.Context(), bellwether, 1, func(c *cluster) error {
		if err := c.settled(t.Context()); err != nil {
			return err
		}
		reports, err := results(bench.Departures{Setting: r.setting(c.Clients(), c.pids()), Candidates: 60, Leaders: 5}.Run(t.Context()))
		if err != nil {
			return err
		}
		bids, err := valueOf(reports[0], "bids at the beginning")
		if len(reports) != 1 || reports[0].Operations != 4 || bids != 60 {
			t.Errorf("%v, want 4 departures among 60 bids", reports)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
