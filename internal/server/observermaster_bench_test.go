package server

import (
	"bytes"
	"fmt"
	"testing"

	"bellwether/wire"
)

// BenchmarkWritesWithObservers measures writes while observers learn from the leader or from followers.
func BenchmarkWritesWithObservers(b *testing.B) {
	for _, masters := range []bool{false, true} {
		for _, n := range []int{0, 5, 10, 20} {
			b.Run(fmt.Sprintf("masters=%v/observers=%d", masters, n), func(b *testing.B) {
				benchWritesWithObservers(b, n, masters)
			})
		}
	}
}

func benchWritesWithObservers(b *testing.B, n int, masters bool) {
	g := newObserverEnsemble(b, n)
	if !masters {
		g.change = nil
	}
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	c := l.connect()
	c.create("/a", "")
	data := bytes.Repeat([]byte("x"), 100)
	sent := l.member.links.Figures().Sent.Value()
	b.ResetTimer()
	for range b.N {
		c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: data, Version: -1}, nil)
	}
	b.StopTimer()
	b.ReportMetric(float64(l.member.links.Figures().Sent.Value()-sent)/float64(b.N), "leader-packets/op")
	g.equal()
}
