package zk

import (
	"bufio"
	"net"
	"testing"

	"bellwether/wire"
)

// fastServer answers one connection with as little work as possible.
func fastServer(tb testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	tb.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		serveFast(conn)
	}()
	return l.Addr().String()
}

func serveFast(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64<<10)
	buf, err := wire.ReadFrame(r, make([]byte, 1024), 1<<20)
	out := wire.AppendFrame(nil, &wire.ConnectResponse{TimeoutMS: 60000, Session: 1, Password: make([]byte, 16), HasReadOnly: true})
	data := wire.DataResponse{Data: make([]byte, 100)}
	var h wire.RequestHeader
	for err == nil && h.Op != wire.OpCloseSession {
		if r.Buffered() == 0 {
			if _, err = conn.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
		if buf, err = wire.ReadFrame(r, buf[:0], 1<<20); err != nil {
			return
		}
		d := wire.Decoder(buf)
		h.Code(&d)
		begun, mark := wire.BeginFrame(out)
		e := wire.Encoder(begun)
		rh := wire.ReplyHeader{Xid: h.Xid, Zxid: 1}
		rh.Code(&e)
		switch h.Op {
		case wire.OpGetData:
			data.Code(&e)
		case wire.OpSetData:
			data.Stat.Code(&e)
		}
		out = wire.EndFrame(e.Bytes(), mark)
	}
}

func speedClient(tb testing.TB) *Client {
	c, err := Connect(tb.Context(), fastServer(tb), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.stop() })
	return c
}

// TestAllocations: a read allocates only the memory that the caller gets, and a write allocates none.
func TestAllocations(t *testing.T) {
	c := speedClient(t)
	data := make([]byte, 100)
	ctx := t.Context()
	for name, x := range map[string]struct {
		max float64
		f   func() error
	}{
		"get": {1, func() error { _, _, err := c.Get(ctx, "/a"); return err }},
		"set": {0, func() error { _, err := c.Set(ctx, "/a", data, -1); return err }},
	} {
		got := testing.AllocsPerRun(2000, func() {
			if err := x.f(); err != nil {
				t.Fatal(err)
			}
		})
		if !raceDetector && got > x.max {
			t.Errorf("%s: %.1f allocations, want at most %.0f", name, got, x.max)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	c := speedClient(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Get(b.Context(), "/a"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetParallel(b *testing.B) {
	c := speedClient(b)
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := c.Get(b.Context(), "/a"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
