package server

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// The stages of a request, in their order. Fsync and quorum overlap.
const (
	StageDecode  = "decode"  // read from the connection, with waits for limits
	StageQueue   = "queue"   // wait for the loop
	StagePropose = "propose" // turned into a transaction; on a learner: by the leader, including the way there and back
	StageFsync   = "fsync"   // until it is durable in this server's log
	StageQuorum  = "quorum"  // until a quorum has it; on a learner: until the leader says so
	StageApply   = "apply"   // carried out
	StageReply   = "reply"   // written to the connection
)

// Stage is one stage of a request. Its times count from when the request was read.
type Stage struct {
	Name string
	From time.Duration
	To   time.Duration
}

// Ack says when a server had a transaction on its disk.
type Ack struct {
	Server ensemble.ServerID
	After  time.Duration // since the request was read
}

// Trace describes one request by its stages. A stage that the request did not have, or whose
// times are no longer known, is not there.
type Trace struct {
	Number    uint64 // counts the traces of a server, from 1
	Server    ensemble.ServerID
	Session   wire.SessionID
	Cxid      int32
	Op        wire.OpCode
	Operation string
	Path      string
	Zxid      wire.Zxid
	Err       wire.Code
	Client    netip.AddrPort
	// Forwarded: the request belongs to a client of a learner, and this is what its leader has
	// seen of it. The learner has a trace with the same session and cxid.
	Forwarded bool
	Requests  int64 // above 1: so many reads arrived together, and the other fields describe the last one
	Began     time.Time
	Took      time.Duration
	Stages    []Stage
	// Acks are those of the leader and its learners, in the order in which they came; only on a
	// leader.
	Acks []Ack
	// Slowest is the stage that took longest. Peer is the server that it waited for: its ack
	// completed the quorum, or it leads; 0: this is not known, or the stage waits for no server.
	Slowest string
	Peer    ensemble.ServerID

	// The server's clock at the moments between stages; 0: not known.
	began, applied int64
}

// stage adds a stage between two moments of the server's clock. It is left out if one of the
// moments is not known, or if they are not in order.
func (t *Trace) stage(name string, from, to int64) {
	if from == 0 || to < from || from < t.began {
		return
	}
	t.Stages = append(t.Stages, Stage{name, time.Duration(from - t.began), time.Duration(to - t.began)})
}

// judge finds the slowest stage, and the server that it waited for. completed is that server if
// the stage is quorum or propose. If the quorum waited for this server's own disk, the slowest
// stage is fsync.
func (t *Trace) judge(completed ensemble.ServerID) {
	longest := time.Duration(-1)
	for _, s := range t.Stages {
		if s.Name != StageFsync && s.To-s.From > longest {
			longest, t.Slowest = s.To-s.From, s.Name
		}
	}
	switch t.Slowest {
	case StageQuorum:
		t.Peer = completed
		if completed == t.Server {
			t.Slowest = StageFsync
		}
	case StagePropose:
		if completed != t.Server {
			t.Peer = completed
		}
	}
}

// String describes the stages, as the log shows them.
func (t *Trace) String() string {
	var b strings.Builder
	for i, s := range t.Stages {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %v", s.Name, rounded(s.To-s.From))
	}
	for i, a := range t.Acks {
		if i == 0 {
			b.WriteString("; acks: ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d after %v", a.Server, rounded(a.After))
	}
	return b.String()
}

// rounded rounds a time so that it is easy to read.
func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}
