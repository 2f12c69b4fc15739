package embed

import (
	"context"
	"fmt"
	"testing"
)

// A server, or an ensemble, serves as soon as Start returns; what is written
// is read by another client at another server.
func TestStartServes(t *testing.T) {
	for _, o := range []Options{
		{},
		{InMemory: true},
		{Dir: "disk"},
		{Servers: 3},
		{Servers: 3, InMemory: true},
		{Servers: 3, Dir: "disk"},
	} {
		t.Run(fmt.Sprintf("%d,%v,%s", o.Servers, o.InMemory, o.Dir), func(t *testing.T) {
			if o.Dir != "" {
				o.Dir = t.TempDir()
			}
			e := started(t, o)
			a := connectedTo(t, e, e.Server(1), nil)
			create(t, a, "/x", "one")
			b := connectedTo(t, e, e.Server(e.Len()), nil)
			holds(t, b, "/x", "one")
			leader, err := e.Leader(patient(t))
			if err != nil || !leader.Leads() || !leader.Running() {
				t.Errorf("leader %v, %v", leader, err)
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name    string
		memory  bool
		servers int
		disk    bool
	}{{"memory", true, 1, false}, {"sockets", false, 1, false}, {"disk", false, 1, true}, {"three", false, 3, false}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				o := Options{InMemory: c.memory, Servers: c.servers}
				if c.disk {
					b.StopTimer()
					o.Dir = b.TempDir()
					b.StartTimer()
				}
				e, err := Start(context.Background(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
