package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"bellwether/wire"
)

// manyClientsEnv tells the second process of the test where to connect and how often.
const manyClientsEnv = "BELLWETHER_TEST_CROWD"

// manyClientsTimeout is how long so many connections may take on a slow machine.
const manyClientsTimeout = 30 * time.Minute

// TestTenThousandConnections: Another process opens ten thousand connections from several
// addresses. They are idle, with a watch each. All are served, each costs a few KB, one
// event reaches all of them, and other clients do not wait.
func TestTenThousandConnections(t *testing.T) {
	n := int(min(10_000, maxFiles()-500))
	if n < 100 {
		t.Fatalf("the limit of open files leaves %d connections", n)
	}
	o := Options{Config: testConfig(), Log: quiet()}
	o.Config.Limits.ClientCnxns = n/16 + 1
	o.Config.MaxSessionTimeout = manyClientsTimeout // so that no session expires while other connections are being opened
	s := start(t, o)
	c := s.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: int32(manyClientsTimeout.Milliseconds()), Password: make([]byte, 16)})
	c.create("/a", "")
	alone := memoryUsed()
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyClientsProcess$")
	cmd.Env = append(os.Environ(), manyClientsEnv+"="+s.Addr().String()+" "+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	expect(t, lines, "connected")
	if got := s.conns.len(); got != n+1 {
		t.Errorf("%d connections, want %d", got, n+1)
	}
	each := (memoryUsed() - alone) / uint64(n)
	t.Logf("%d bytes for each idle connection", each)
	if each > idleMax {
		t.Errorf("an idle connection takes %d bytes, want at most %d", each, idleMax)
	}
	c.nc.SetDeadline(time.Now().Add(eventTimeout))
	begin := time.Now()
	c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}, nil)
	t.Logf("the write was answered after %v", time.Since(begin))
	fmt.Fprintln(in, "read")
	expect(t, lines, "events")
}

// idleMax is the most memory that an idle connection with a watch may use, including the
// stack of its goroutine.
const idleMax = 16 << 10

// TestConnIsSmall: what only a connection with requests needs is not a part of each connection.
func TestConnIsSmall(t *testing.T) {
	const most = 960 // a size of the allocator; the next one is 1,024 bytes
	if n := unsafe.Sizeof(conn{}); n > most {
		t.Errorf("a connection takes %d bytes, want at most %d", n, most)
	}
}

// memoryUsed returns the memory in use after a garbage collection.
func memoryUsed() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func expect(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("the second process says %q, want %q", lines.Text(), want)
	}
}

// TestManyClientsProcess is the second process of TestTenThousandConnections. In the first
// process it does nothing.
func TestManyClientsProcess(t *testing.T) {
	var addr string
	var n int
	if _, err := fmt.Sscan(os.Getenv(manyClientsEnv), &addr, &n); err != nil {
		return
	}
	conns := make([]net.Conn, n)
	watch := request(1, wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true})
	for i := range conns {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(i%16), 1)}}
		nc, err := d.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(manyClientsTimeout))
		nc.Write(append(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: int32(manyClientsTimeout.Milliseconds()), Password: make([]byte, 16)}), watch...))
		for range 2 {
			if _, err := wire.ReadFrame(nc, nil, 1<<16); err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
		}
		conns[i] = nc
	}
	fmt.Println("connected")
	if _, err := io.ReadFull(os.Stdin, make([]byte, len("read\n"))); err != nil {
		t.Fatal(err)
	}
	for i, nc := range conns {
		if _, err := wire.ReadFrame(nc, nil, 1<<16); err != nil {
			t.Fatalf("event of connection %d: %v", i, err)
		}
	}
	fmt.Println("events")
}
