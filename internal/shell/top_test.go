package shell

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func topFor(servers, clients int) *top {
	t := &top{app: newApp(), delay: 2 * time.Second}
	for second := range 2 {
		s := topSample{taken: time.UnixMilli(int64(second) * 1000)}
		for i := range servers {
			sessions, lag, disk := int64(12), int64(i), int64(5<<30)
			one := topServer{Sessions: &sessions, DiskBytes: &disk}
			one.Server, one.Mode, one.Zxid = fmt.Sprintf("zk%d.example:2181", i), "follower", "0x100000001"
			one.watchers = map[string]int{"/hot": 7, "/" + strings.Repeat("long", 30): 3 - i, fmt.Sprintf("/of/server/%d", i): 1}
			one.Received, one.Behind = int64(second*(1000-i)), &lag
			for n := range clients {
				one.clients = append(one.clients, topClient{
					Address: fmt.Sprintf("10.0.%d.%d:5000", i, n), Server: one.Server, Session: "0x1", received: int64(second * n), Average: float64(100 - n), Waiting: int64(n % 3),
				})
			}
			s.servers = append(s.servers, one)
		}
		t.before, t.now = t.now, s
	}
	return t
}

// TestTopFits shows that no line of a table is wider than the terminal, from 30 columns on, that all columns are shown if there
// is room, and that less important ones are left out first.
func TestTopFits(t *testing.T) {
	top := topFor(3, 20)
	for columns := 30; columns <= 200; columns++ {
		for line := range strings.Lines(top.text(columns, 40)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Fatalf("%d columns: %d in %q", columns, n, line)
			}
		}
	}
	wide, narrow := top.text(200, 40), top.text(60, 40)
	for _, head := range []string{"SERVER", "ROLE", "REQ/S", "AVG ms", "ZXID", "LAG", "SESSIONS", "WATCHES", "CONNS", "WAITING", "NODES", "DISK", "CLIENT", "PATH", "WATCHERS"} {
		if !strings.Contains(wide, head) {
			t.Errorf("no %s in\n%s", head, wide)
		}
	}
	if !strings.Contains(narrow, "REQ/S") || strings.Contains(narrow, "NODES") {
		t.Errorf("60 columns:\n%s", narrow)
	}
}

// TestTopReport shows the rates, the order of the connections and what is not known.
func TestTopReport(t *testing.T) {
	top := topFor(1, 20)
	r := top.report()
	if len(r.Connections) != clientsReported || *r.Servers[0].PerSecond != 1000 || r.Connections[0].Address != "10.0.0.19:5000" || *r.Connections[0].PerSecond != 19 {
		t.Errorf("%+v", r.Connections)
	}
	top.order = byLatency
	if r = top.report(); r.Connections[0].Address != "10.0.0.0:5000" {
		t.Errorf("by latency: %+v", r.Connections[0])
	}
	top.order = byWaiting
	if r = top.report(); r.Connections[0].Waiting != 2 {
		t.Errorf("by waiting: %+v", r.Connections[0])
	}
	top.now.servers[0].Received = -1 // the server has been started again
	top.now.servers[0].Sessions = nil
	if text := top.text(0, 0); !strings.Contains(text, " - ") || top.report().Servers[0].PerSecond != nil {
		t.Errorf("unknown figures:\n%s", text)
	}
	if top.key(t.Context(), 's'); top.order != byRequests || top.key(t.Context(), 'x') || !top.key(t.Context(), 'q') {
		t.Error("keys")
	}
}

// TestTopPaths shows that top lists the paths with most watchers of all servers together, from answers to wchp in the form of Apache ZooKeeper 3.8.
func TestTopPaths(t *testing.T) {
	got := parseWatchers("/a\n\t0x100000a\n\t0x100000b\n/b c\n\t0x100000a\nnonsense\n\t0x1\n/none\n\tno id\n\n")
	if want := map[string]int{"/a": 2, "/b c": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	top := topFor(3, 1)
	paths := top.report().Paths
	if len(paths) != pathsReported || paths[0] != (topPath{"/hot", 21}) || paths[1].Watchers != 3+2+1 || paths[2].Path != "/of/server/0" {
		t.Errorf("%+v", paths)
	}
	if none := topFor(0, 0).report().Paths; none == nil || len(none) != 0 {
		t.Errorf("without watches: %v", none)
	}
}

// TestTopUnreachable shows that top prints no figures for a server that does not answer.
func TestTopUnreachable(t *testing.T) {
	top := topFor(1, 0)
	top.now.servers[0] = topServer{serverStatus: serverStatus{Server: "zk0.example:2181", Mode: "unreachable", Error: "refused"}}
	line := strings.Split(top.text(0, 0), "\n")[1]
	if want := "zk0.example:2181 unreachable" + strings.Repeat(" -", 10); strings.Join(strings.Fields(line), " ") != want {
		t.Errorf("%q, want %q", line, want)
	}
}

// TestParseTopClients shows that connections of an Apache ZooKeeper 3.8 answer to cons are
// parsed, and that connections without a session and other lines are left out.
func TestParseTopClients(t *testing.T) {
	got := parseTopClients(" /127.0.0.1:40012[1](queued=2,recved=31,sent=30,sid=0x100000a,lop=PING,est=1,to=4000,lcxid=0x1,lzxid=0x2,lresp=9,llat=0,minlat=0,avglat=1.5,maxlat=3)\n"+
		" /[0:0:0:0:0:0:0:1]:40013[0](queued=0,recved=1,sent=0)\n\nnonsense(\n(sid=0x1)\n", "zk1:2181")
	if len(got) != 1 || got[0].Address != "127.0.0.1:40012" || got[0].Waiting != 2 || got[0].received != 31 || got[0].Average != 1.5 || got[0].Session != "0x100000a" {
		t.Errorf("%+v", got)
	}
}
