package rate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestConnectionsExactly gives a sequence of connections and its decisions: tokens come
// back only after more than the fill time, then in proportion; a connection that is
// refused costs nothing.
func TestConnectionsExactly(t *testing.T) {
	c := NewConnections(ConnectionOptions{Tokens: 3, FillTime: time.Second, FillCount: 2, Freeze: -1}, 0)
	for i, step := range []struct {
		ms      int64
		cost    int
		admits  bool
		missing int
	}{
		{0, 1, true, 1},
		{0, 3, false, 1},
		{0, 2, true, 3},
		{1000, 1, false, 3}, // a refill needs more than the fill time
		{1001, 1, true, 2},  // the refill added two tokens
		{1900, 1, true, 3},
		{1900, 1, false, 3},
		{2501, 3, true, 3}, // 1.5 s add three
		{9999, 1, true, 1}, // never more than the size
	} {
		if got := c.Admit(step.ms*1e6, step.cost, 0); got != step.admits || c.Missing() != step.missing {
			t.Errorf("step %d: %v with %d missing, want %v with %d", i, got, c.Missing(), step.admits, step.missing)
		}
	}
}

// TestDropProbabilityExactly gives the drop probability while the tokens run out, and
// after that.
func TestDropProbabilityExactly(t *testing.T) {
	o := ConnectionOptions{Tokens: 4, FillTime: 100 * time.Millisecond, FillCount: 1, Freeze: 10 * time.Millisecond,
		Increase: 0.5, Decrease: 0.25, DecreaseRatio: 0.5}
	c := NewConnections(o, 0)
	for i, step := range []struct {
		ms      int64
		cost    int
		random  float64
		admits  bool
		drop    float64
		missing int
	}{
		{5, 4, 0, true, 0, 4},
		{10, 1, 0, false, 0, 4},    // the freeze time has not been exceeded yet
		{11, 1, 0.4, false, .5, 4}, // 0.4 is below the probability
		{12, 1, 0.6, false, .5, 4}, // no token
		{22, 1, 0.9, false, 1, 4},
		{33, 1, 0.9, false, 1, 4},   // the probability stays at 1
		{120, 1, 0.9, false, 1, 3},  // a token came, but the probability is 1
		{221, 1, 0.9, true, .75, 3}, // half of the tokens are missing, so the probability falls
		{432, 1, 0.7, true, .5, 2},
		{532, 0, 0.5, true, .25, 2}, // 100 ms are not more than the fill time
		{543, 0, 0.5, true, 0, 1},
		{554, 0, 0, true, 0, 1}, // the probability stays at 0
	} {
		got := c.Admit(step.ms*1e6, step.cost, step.random)
		if got != step.admits || c.DropProbability() != step.drop || c.Missing() != step.missing {
			t.Errorf("step %d: %v, probability %v, %d missing; want %v, %v, %d", i, got, c.DropProbability(), c.Missing(), step.admits, step.drop, step.missing)
		}
	}
}

// TestConnectionsProperties: with any settings, the admitted connections cost no more
// tokens than the full bucket held and than came back since, and the invariants hold.
func TestConnectionsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := ConnectionOptions{
			Tokens: rapid.IntRange(1, 1<<31-1).Draw(t, "tokens"), FillTime: time.Duration(rapid.Int64Range(1, 1<<31).Draw(t, "fill ms")) * time.Millisecond,
			FillCount: rapid.IntRange(1, 1<<31-1).Draw(t, "count"), Freeze: time.Duration(rapid.Int64Range(-1, 1e10).Draw(t, "freeze")),
			Increase: rapid.Float64Range(0, 1).Draw(t, "increase"), Decrease: rapid.Float64Range(0, 1).Draw(t, "decrease"), DecreaseRatio: rapid.Float64Range(0, 1).Draw(t, "ratio"),
		}
		c := NewConnections(o, 0)
		now, spent := int64(0), 0.0
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			now += rapid.Int64Range(0, 4*int64(o.FillTime)).Draw(t, "ns")
			cost := rapid.IntRange(0, o.Tokens).Draw(t, "cost")
			if c.Admit(now, cost, rapid.Float64Range(0, 0.99).Draw(t, "random")) {
				spent += float64(cost)
			}
			most := float64(o.Tokens) + float64(now)/float64(o.FillTime)*float64(o.FillCount)
			if spent > most*(1+1e-9) {
				t.Fatalf("%v tokens were spent, only %v came", spent, most)
			}
			if c.tokens < 0 || c.tokens > o.Tokens || c.drop < 0 || c.drop > 1 {
				t.Fatalf("%+v", c)
			}
		}
		if !NewConnections(o, now).Admit(now, o.Tokens, 0) {
			t.Fatal("a full bucket refuses")
		}
	})
}
