package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"bellwether/internal/config"
	"bellwether/wire"
)

// BenchmarkEnsembleWrites measures the writes of three servers on one disk. The
// connections are spread over all servers, and each keeps several requests in flight.
func BenchmarkEnsembleWrites(b *testing.B) {
	for _, o := range []struct{ connections, outstanding int }{{1, 1}, {64, 1}, {64, 16}} {
		b.Run(fmt.Sprintf("%dx%d", o.connections, o.outstanding), func(b *testing.B) {
			g := newTestEnsemble(b, 3, 0, true)
			g.change = func(c *config.Config) { c.Storage.SnapCount = 1 << 30 }
			for _, m := range g.servers {
				g.start(m)
			}
			g.settled()
			var clients []*client
			for i := range o.connections {
				c := g.servers[i%3].connect()
				c.create(fmt.Sprintf("/n%d", i), "")
				clients = append(clients, c)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i, c := range clients {
				all.Go(func() { c.sets(fmt.Sprintf("/n%d", i), o.outstanding, &left) })
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// sets writes a znode repeatedly, n requests at a time, while left is positive.
func (c *client) sets(path string, n int, left *atomic.Int64) {
	data := make([]byte, 100)
	flying := 0
	for more := true; more || flying > 0; {
		for more && flying < n {
			if more = left.Add(-1) >= 0; more {
				c.send(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: -1})
				flying++
			}
		}
		if flying > 0 {
			c.reply(&wire.StatResponse{})
			flying--
		}
	}
}
