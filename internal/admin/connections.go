package admin

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/server"
	"bellwether/wire"
)

// decimal formats a value as Java formats a double rounded to four places: 0.0, 0.1538.
func decimal(v float64) string { return javaDouble(rounded(v)) }

// address formats a client's address as Java does.
func address(a netip.AddrPort) string { return "/" + a.String() }

// brief returns a connection's line in stat, which is also the beginning of its line in
// cons. The number in brackets is ZooKeeper's interest: 1 once there is a session.
func brief(c *server.Connection) string {
	return fmt.Sprintf("%s[%d](queued=%d,recved=%d,sent=%d)", address(c.Addr), interest(c), c.Queued, c.Received, c.Sent)
}

func interest(c *server.Connection) int {
	if c.Session == 0 {
		return 0
	}
	return 1
}

func cons(_ *Admin, s *server.Server) string {
	var b strings.Builder
	for _, c := range s.Connections() {
		line := brief(&c)
		if c.Session != 0 {
			line = strings.TrimSuffix(line, ")") + details(&c)
		}
		b.WriteString(" " + line + "\n")
	}
	b.WriteByte('\n')
	return b.String()
}

// details returns what cons adds for a connection with a session.
func details(c *server.Connection) string {
	var b strings.Builder
	fmt.Fprintf(&b, ",sid=%v,lop=%s,est=%d,to=%d", c.Session, opName(c), c.Established.UnixMilli(), c.Timeout.Milliseconds())
	if c.LastXid >= 0 {
		fmt.Fprintf(&b, ",lcxid=0x%x", c.LastXid)
	}
	fmt.Fprintf(&b, ",lzxid=%v,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d)", c.LastZxid, c.LastReply.Milliseconds(),
		c.LastLatency, c.MinLatency, c.AverageLatency, c.MaxLatency)
	return b.String()
}

// opName returns the name of the last operation in at most four letters.
func opName(c *server.Connection) string {
	switch {
	case c.Answered == 0:
		return "NA"
	case c.LastOp == wire.OpCreateSession:
		return "SESS"
	case c.LastOp == wire.OpMultiRead:
		return "MULR"
	}
	name := strings.ToUpper(c.LastOp.String())
	return name[:min(4, len(name))]
}

// javaDate formats a time as Java formats a date.
func javaDate(t time.Time) string { return t.Format("Mon Jan 02 15:04:05 MST 2006") }

func dump(_ *Admin, s *server.Server) string {
	var b strings.Builder
	b.WriteString("SessionTracker dump:\n")
	kind := ""
	if c := s.Config(); !c.Standalone() && c.Ensemble.LocalSessions {
		dumpExpiring(&b, "Local ", s.LocalSessions())
		kind = "Global "
	}
	if mode := s.Status().Mode; mode == "follower" || mode == "observer" {
		dumpGlobal(&b, s)
	} else {
		dumpExpiring(&b, kind, s.Sessions())
	}
	owners := s.Tree().EphemeralsBySession()
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, o := range owners {
		fmt.Fprintf(&b, "%v:\n", o.Session)
		writePaths(&b, o.Paths)
	}
	dumpConnections(&b, s.Connections())
	return b.String()
}

// dumpExpiring lists sessions by their expiry time, which only a leader or a standalone
// server decides.
func dumpExpiring(b *strings.Builder, kind string, sets []server.Expiring) {
	total := 0
	for _, e := range sets {
		total += len(e.Sessions)
	}
	fmt.Fprintf(b, "%sSession Sets (%d)/(%d):\n", kind, len(sets), total)
	for _, e := range sets {
		fmt.Fprintf(b, "%d expire at %s:\n", len(e.Sessions), javaDate(e.At))
		for _, id := range e.Sessions {
			fmt.Fprintf(b, "\t%v\n", id)
		}
	}
}

// dumpGlobal lists the global sessions that a learner knows.
func dumpGlobal(b *strings.Builder, s *server.Server) {
	timeouts := map[wire.SessionID]int32{}
	s.Tree().Sessions(func(id wire.SessionID, timeoutMS int32) { timeouts[id] = timeoutMS })
	fmt.Fprintf(b, "Global Sessions(%d):\n", len(timeouts))
	for _, id := range slices.Sorted(maps.Keys(timeouts)) {
		fmt.Fprintf(b, "%v\t%dms\n", id, timeouts[id])
	}
}

// connectionSet is the width of the intervals in which ZooKeeper closes silent connections.
const connectionSet = 10 * time.Second

// dumpConnections lists connections by the time at which the server closes them if they
// stay silent.
func dumpConnections(b *strings.Builder, conns []server.Connection) {
	end := func(c *server.Connection) time.Time { return c.Deadline.Truncate(connectionSet).Add(connectionSet) }
	slices.SortStableFunc(conns, func(x, y server.Connection) int { return end(&x).Compare(end(&y)) })
	sets := 0
	var list strings.Builder
	for i := 0; i < len(conns); sets++ {
		at := end(&conns[i])
		n := i
		for n < len(conns) && end(&conns[n]).Equal(at) {
			n++
		}
		fmt.Fprintf(&list, "%d expire at %s:\n", n-i, javaDate(at))
		for ; i < n; i++ {
			fmt.Fprintf(&list, "\tip: %s sessionId: 0x%x\n", address(conns[i].Addr), uint64(conns[i].Session))
		}
	}
	fmt.Fprintf(b, "Connections dump:\nConnections Sets (%d)/(%d):\n%s", sets, len(conns), list.String())
}

func wchs(_ *Admin, s *server.Server) string {
	watches, paths, sessions := s.Tree().DataWatches()
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", sessions, paths, watches)
}

// watchLine is the greatest length of a session's line.
const watchLine = len("\t0x0123456789abcdef\n")

func wchc(_ *Admin, s *server.Server) string {
	var b strings.Builder
	list, size := s.Tree().WatchesBySession(), 0
	for _, o := range list {
		size += watchLine
		for _, path := range o.Paths {
			size += 2 + len(path)
		}
	}
	b.Grow(size) // allocate once, because it takes long to copy many megabytes
	for _, o := range list {
		fmt.Fprintf(&b, "%v\n", o.Session)
		writePaths(&b, o.Paths)
	}
	b.WriteByte('\n')
	return b.String()
}

// writePaths writes a line for each path. There may be a million paths.
func writePaths(b *strings.Builder, paths []string) {
	for _, p := range paths {
		b.WriteByte('\t')
		b.WriteString(p)
		b.WriteByte('\n')
	}
}

func wchp(_ *Admin, s *server.Server) string {
	var b strings.Builder
	var hex []byte
	list, size := s.Tree().WatchesByPath(), 0
	for _, p := range list {
		size += 1 + len(p.Path) + watchLine*len(p.Sessions)
	}
	b.Grow(size)
	for _, p := range list {
		b.WriteString(p.Path)
		b.WriteByte('\n')
		for _, id := range p.Sessions {
			hex = strconv.AppendUint(append(hex[:0], "\t0x"...), uint64(id), 16)
			b.Write(append(hex, '\n'))
		}
	}
	b.WriteByte('\n')
	return b.String()
}
