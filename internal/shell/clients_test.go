package shell

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"bellwether/wire"
)

// TestParseClients shows that the answers to cons and dump are parsed as ZooKeeper's leader and
// followers write them.
func TestParseClients(t *testing.T) {
	addresses := map[wire.SessionID]string{}
	parseCons(" /127.0.0.1:52582[0](queued=0,recved=1,sent=0)\n"+
		" /127.0.0.1:52560[1](queued=0,recved=4,sent=4,sid=0x1000010b4700001,lop=CREA,est=1795239103623,to=20000)\n"+
		" /[fd00::1]:7[1](queued=0,recved=5,sent=5,sid=0x1000010b4700000,lop=GETC)\n\n", addresses)
	if want := map[wire.SessionID]string{0x1000010b4700001: "127.0.0.1:52560", 0x1000010b4700000: "[fd00::1]:7"}; !maps.Equal(addresses, want) {
		t.Errorf("%v", addresses)
	}
	for text, want := range map[string]map[wire.SessionID]bool{
		"SessionTracker dump:\nSession Sets (1)/(2):\n2 expire at Sat Nov 21 05:32:14 UTC 2026:\n\t0x1000010b4700000\n\t0x100000edcd00000\n" +
			"ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x7:\n\t/w/e\n": {0x1000010b4700000: true, 0x100000edcd00000: true},
		"SessionTracker dump:\nGlobal Sessions(1):\n0x4000011ecd70000\t20000ms\nephemeral nodes dump:\n": {0x4000011ecd70000: true},
		"dump is not executed because it is not in the whitelist.\n":                                     {},
	} {
		got := map[wire.SessionID]bool{}
		if parseDump(text, got); !maps.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestClientAddresses shows which client addresses a configuration gives.
func TestClientAddresses(t *testing.T) {
	got := clientAddresses("server.1=zk1:2888:3888:participant;2181\n"+
		"server.2=zk2:2888:3888:participant;0.0.0.0:2182\n"+
		"server.3=[fd00::3]:2888:3888|[fd00::4]:2888:3888:observer;[::]:2183\n"+
		"server.4=zk4:2888:3888:participant;clients.zk4:2184\n"+
		"server.5=zk5:2888:3888:participant\n"+
		"server.6=zk6:2888:3888;0\n"+
		"version=100000000\n", "2190", false)
	want := []string{"zk1:2181", "zk2:2182", "[fd00::3]:2183", "clients.zk4:2184", "zk5:2190"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = clientAddresses("server.1=zk1:2888:3888;2181\nserver.2=zk2:2888:3888;0.0.0.0:2181\n", "2281", true)
	if want = []string{"zk1:2281", "zk2:2281"}; !slices.Equal(got, want) {
		t.Errorf("with TLS: %q, want %q", got, want)
	}
}

// TestAskAdmin shows that a server that does not answer the words is asked through its
// AdminServer, whose answers have the form of ZooKeeper 3.8. Another page is ignored.
func TestAskAdmin(t *testing.T) {
	refusing := listen(t, func(c net.Conn) { io.WriteString(c, "cons is not executed because it is not in the whitelist.\n") })
	pages := map[string]string{
		"/commands/connections": `{"connections":[{"remote_socket_address":"127.0.0.1:48552","session_id":72059267852730369,"last_operation":"ADDW"},{"remote_socket_address":"127.0.0.1:1"}],
			"secure_connections":[{"remote_socket_address":"10.0.0.7:9","session_id":7}],"command":"connections","error":null}`,
		"/commands/dump": `{"expiry_time_to_session_ids":{"25551000":[72059267852730368,7]},"session_id_to_ephemeral_paths":{},"command":"dump","error":null}`,
	}
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, pages[r.URL.Path]) }))
	defer admin.Close()
	_, text, _ := net.SplitHostPort(admin.Listener.Addr().String())
	port, _ := strconv.Atoi(text)
	for _, tc := range []struct {
		port             int
		addresses, known int
	}{{port, 2, 2}, {0, 0, 0}} {
		got := &clientList{addresses: map[wire.SessionID]string{}, known: map[wire.SessionID]bool{}}
		got.ask(t.Context(), newApp(), refusing, 10*time.Second, tc.port)
		if len(got.addresses) != tc.addresses || len(got.known) != tc.known || tc.addresses > 0 && got.addresses[7] != "10.0.0.7:9" {
			t.Errorf("port %d: %v, %v", tc.port, got.addresses, got.known)
		}
	}
	pages["/commands/connections"], pages["/commands/dump"] = "<html>", `{"expiry_time_to_session_ids":[]}`
	got := &clientList{addresses: map[wire.SessionID]string{}, known: map[wire.SessionID]bool{}}
	if got.ask(t.Context(), newApp(), refusing, 10*time.Second, port); len(got.addresses)+len(got.known) > 0 {
		t.Errorf("%v", got)
	}
}

// listen serves each connection to a new address by a function until the test ends.
func listen(t *testing.T, answer func(net.Conn)) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			io.ReadFull(c, make([]byte, 4))
			answer(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-ended })
	return ln.Addr().String()
}
