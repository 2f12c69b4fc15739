package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// TestRecordedIntroductions: the first message of each recorded connection is the same, to the byte, as
// the one that this server sends in the same situation. The server that receives it acts as ZooKeeper
// did: it keeps the connection of a larger id, and dials back to a smaller one.
func TestRecordedIntroductions(t *testing.T) {
	n := 0
	for _, v := range electionVectors(t).Vectors {
		if v.Kind != "INITIAL" {
			continue
		}
		n++
		raw, err := hex.DecodeString(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		var msg peerwire.InitialMessage
		if err := wire.Decode(raw, &msg); err != nil {
			t.Fatal(err)
		}
		from, to := int(v.From.(float64)), int(v.To.(float64))
		host, _, _ := net.SplitHostPort(msg.Addresses[0])
		if got := introduction(t, from, to, host); !bytes.Equal(got, raw) {
			t.Errorf("%s: introduced by %x, recorded %x", v.Name, got, raw)
		}
		introduced(t, from, to, raw)
	}
	if n != 34 {
		t.Errorf("%d introductions, want 34", n)
	}
}

// recordedServers are the four servers of the recordings. The first one has a host of its own.
func recordedServers(t *testing.T, first int, host string) *ensemble.Membership {
	t.Helper()
	var d ensemble.Definition
	for id := 1; id <= 4; id++ {
		at := ensemble.Address{Host: "127.0.0.1", QuorumPort: 23220 + id, ElectionPort: 23230 + id}
		if id == first {
			at.Host = host
		}
		d.Servers = append(d.Servers, ensemble.Server{ID: ensemble.ServerID(id), Addresses: []ensemble.Address{at}})
	}
	m, err := ensemble.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// listenAnywhere returns a listener on a port that the system chooses.
func listenAnywhere(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// recordedMesh starts a server of the recordings that listens on ln. For each address
// that it dials, dialled returns the listener to connect to instead, or nil if the dial must hang.
func recordedMesh(t *testing.T, id int, m *ensemble.Membership, s *sink, ln net.Listener, dialled func(address string) net.Listener) *Mesh {
	t.Helper()
	mesh, err := NewMesh(Options{
		ID: ensemble.ServerID(id), Membership: m, Handle: s.handle, Log: slog.New(slog.DiscardHandler),
		Listen: func(string) (net.Listener, error) { return ln, nil },
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if to := dialled(address); to != nil {
				return new(net.Dialer).DialContext(ctx, "tcp", to.Addr().String())
			}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mesh
}

// introduction returns the first message that one server sends to another.
func introduction(t *testing.T, from, to int, host string) []byte {
	ln := listenAnywhere(t)
	defer ln.Close()
	m := recordedServers(t, from, host)
	other, _ := m.Server(ensemble.ServerID(to))
	mesh := recordedMesh(t, from, m, newSink(), listenAnywhere(t), func(address string) net.Listener {
		if address == other.Addresses[0].Election() {
			return ln
		}
		return nil
	})
	defer mesh.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(eventTimeout))
	var msg peerwire.InitialMessage
	var read bytes.Buffer
	if err := wire.ReadRecord(bufio.NewReaderSize(io.TeeReader(c, &read), 16), &msg, peerwire.InitialMax); err != nil {
		t.Fatal(err)
	}
	return read.Bytes()
}

// introduced sends a server the first message of another server, and checks how the server treats it.
func introduced(t *testing.T, from, to int, raw []byte) {
	s, ln, back := newSink(), listenAnywhere(t), make(chan struct{}, 100)
	m := recordedServers(t, 0, "")
	other, _ := m.Server(ensemble.ServerID(from))
	heard := false
	var mu sync.Mutex
	mesh := recordedMesh(t, to, m, s, ln, func(address string) net.Listener {
		mu.Lock()
		defer mu.Unlock()
		if heard && address == other.Addresses[0].Election() {
			back <- struct{}{}
		}
		return nil
	})
	defer mesh.Close()
	f := rawDial(t, ln.Addr().String())
	mu.Lock()
	heard = true
	mu.Unlock()
	f.send(raw)
	if from > to {
		await(t, s, up(from))
		return
	}
	f.over()
	select {
	case <-back:
	case <-time.After(eventTimeout):
		t.Errorf("server %d does not dial server %d back", to, from)
	}
}
