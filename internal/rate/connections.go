package rate

import (
	"math"
	"time"
)

// ConnectionOptions are the settings of [Connections], which are ZooKeeper's keys
// connection_throttle_*.
type ConnectionOptions struct {
	Tokens        int           // size of the bucket
	FillTime      time.Duration // after more than this time, tokens are added
	FillCount     int           // tokens for each FillTime
	Freeze        time.Duration // time between changes of the drop probability; negative: it stays 0
	Increase      float64       // added to the drop probability when there is no token
	Decrease      float64       // subtracted from the drop probability when few tokens are missing
	DecreaseRatio float64       // the largest share of Tokens that may be missing for Decrease to apply
}

// Connections decides which new connections are admitted, by ZooKeeper's rules. Each one
// costs tokens, which come back with time. While the tokens run out again and again, the
// drop probability rises, and that share of the connections is refused at once.
//
// Invariants: 0 <= tokens <= Tokens; 0 <= drop <= 1.
type Connections struct {
	o      ConnectionOptions
	tokens int
	filled int64   // when tokens were last added
	drop   float64 // drop probability
	moved  int64   // when a change of drop was last considered
}

// NewConnections returns a Connections with a full bucket.
func NewConnections(o ConnectionOptions, now int64) *Connections {
	return &Connections{o: o, tokens: o.Tokens, filled: now, moved: now}
}

// Missing returns how many tokens are in use.
func (c *Connections) Missing() int { return c.o.Tokens - c.tokens }

// DropProbability returns the share of connections that is refused whether or not there
// are tokens.
func (c *Connections) DropProbability() float64 { return c.drop }

// Admit decides whether a connection that costs the given number of tokens is admitted.
// random is a random number from 0 up to, but not including, 1.
func (c *Connections) Admit(now int64, cost int, random float64) bool {
	if passed := now - c.filled; passed > int64(c.o.FillTime) {
		added := float64(passed) * float64(c.o.FillCount) / float64(c.o.FillTime)
		c.tokens += int(min(added, float64(c.Missing())))
		c.filled = now
	}
	if c.o.Freeze >= 0 {
		c.move(now)
		if random < c.drop {
			return false
		}
	}
	if cost > c.tokens {
		return false
	}
	c.tokens -= cost
	return true
}

// move changes the drop probability if that is due.
func (c *Connections) move(now int64) {
	if now-c.moved <= int64(c.o.Freeze) {
		return
	}
	c.moved = now
	few := int(math.Floor(float64(c.o.Tokens)*c.o.DecreaseRatio + 0.5))
	switch {
	case c.tokens == 0 && c.drop < 1:
		c.drop = min(c.drop+c.o.Increase, 1)
	case c.Missing() <= few:
		c.drop = max(c.drop-c.o.Decrease, 0)
	}
}
