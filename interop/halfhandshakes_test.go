package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/interop/target"
	"bellwether/zk"
)

const (
	halfHandshakes = 10_000
	// halfMemoryMax is how many KiB of the server's memory an unfinished handshake may
	// use.
	halfMemoryMax = 64
	// besideMax is how long a client may wait for a connection or a reply meanwhile.
	besideMax = 5 * time.Second
)

// TestManyHalfHandshakes opens 10,000 connections that begin a TLS handshake and then send nothing more. It
// shows that other clients are served meanwhile, that the connections use little memory, and that the server
// ends them.
func TestManyHalfHandshakes(t *testing.T) {
	dir, port := certificates(t), target.FreePort(t)
	s := target.StartFor(t, target.Bellwether, target.Options{Extra: target.SecureKeys("ssl.", dir, map[string]string{
		"secureClientPort": port, "secureClientPortAddress": "127.0.0.1"})})
	at, before := "127.0.0.1:"+port, resident(t, s)
	held := holdHalf(t, at, halfHandshakes)
	after := resident(t, s)
	slowest := useBeside(t, at, dir)
	if slowest > besideMax {
		t.Errorf("a client beside them waited %s", slowest)
	}
	if each := (after - before) / halfHandshakes; each > halfMemoryMax {
		t.Errorf("each half handshake uses %d KiB", each)
	}
	t.Logf("%d MiB before, %d MiB with %d half handshakes; the slowest call of another client took %s", before>>10, after>>10, halfHandshakes, slowest)
	for _, c := range held {
		c.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if _, err := c.Read(make([]byte, 1)); os.IsTimeout(err) {
			t.Fatal("the server has not ended a connection with half a handshake")
		}
	}
}

// holdHalf opens connections and sends the beginning of a ClientHello on each.
func holdHalf(t *testing.T, at string, n int) []net.Conn {
	t.Helper()
	held := make([]net.Conn, n)
	errs := make([]error, n)
	slots := make(chan struct{}, 64)
	var group sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if held[i], errs[i] = net.Dial("tcp", at); errs[i] == nil {
				_, errs[i] = held[i].Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})
			}
		})
	}
	group.Wait()
	for i, c := range held {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		t.Cleanup(func() { c.Close() })
	}
	return held
}

// useBeside connects a client several times and writes, and returns how long the slowest call took.
func useBeside(t *testing.T, at, dir string) (slowest time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	timed := func(f func() error) {
		t.Helper()
		began := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	pem := filepath.Join(dir, "client.pem")
	for i := range 10 {
		var c *zk.Client
		timed(func() (err error) {
			c, err = zk.Connect(ctx, at, &zk.Options{TLSFiles: &zk.TLSFiles{CA: filepath.Join(dir, authority.CertFile), Cert: pem, Key: pem}})
			return err
		})
		for j := range 10 {
			timed(func() error {
				_, _, err := c.Create(ctx, fmt.Sprint("/n", i, ".", j), nil)
				return err
			})
		}
		timed(func() error { return c.Close(ctx) })
	}
	return slowest
}

// resident returns the resident memory of a server's process in KiB.
func resident(t *testing.T, s *target.Server) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rss, _ := strings.Cut(string(b), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rss)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
