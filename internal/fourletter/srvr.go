package fourletter

import (
	"strconv"
	"strings"
	"time"
)

// ValueMax is how much of one value of an answer is kept, in bytes.
const ValueMax = 300

// Srvr is the answer to the word srvr. The field of a line that a server does not send
// has its zero value.
type Srvr struct {
	Version     string
	Mode        string // leader, follower, observer, standalone or read-only; empty: the server does not serve
	Zxid        string
	Latency     string // minimum/average/maximum in ms
	Received    int64  // requests since the start
	Connections int
	Outstanding int
	Nodes       int
	Reason      string // why the server accepts no writes or serves only in part: all reasons
	Differs     string // the reason that its tree differs from that of other servers, and no snapshot has replaced it yet
	ClosedPort  string // the reason that its election port is not open
	SlowDisk    string // how slow the disk is; empty if it is not
	Unfit       string // the servers that have told this leader that they should not lead, and why
	Prefers     string // the server to which this leader will transfer leadership, and when
	// When the first certificate expires; nil: no TLS of that kind, or the server does not say it.
	ClientCertificate, QuorumCertificate *time.Time
}

// ParseSrvr parses the answer to srvr. It skips lines that it does not know.
func ParseSrvr(text string) Srvr {
	var s Srvr
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		value = Clip(Clean(value), ValueMax)
		switch key {
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, ",")
		case "Latency min/avg/max":
			s.Latency = value
		case "Received":
			s.Received, _ = strconv.ParseInt(value, 10, 64)
		case "Connections":
			s.Connections, _ = strconv.Atoi(value)
		case "Outstanding":
			s.Outstanding, _ = strconv.Atoi(value)
		case "Node count":
			s.Nodes, _ = strconv.Atoi(value)
		case "Zxid":
			s.Zxid = value
		case "Mode":
			s.Mode = value
		case "Slow disk":
			s.SlowDisk = value
		case "Should not lead":
			s.Unfit = value
		case "Preferred leader":
			s.Prefers = value
		case "Certificate for clients expires":
			s.ClientCertificate = instant(value)
		case "Certificate between servers expires":
			s.QuorumCertificate = instant(value)
		default:
			if strings.HasSuffix(key, " because") { // why the server is read-only or serves only in part
				s.because(value)
			}
		}
	}
	return s
}

// because adds a reason for which the server accepts no writes or serves only in part.
func (s *Srvr) because(reason string) {
	if s.Reason != "" {
		s.Reason += "; "
	}
	s.Reason += reason
	switch {
	case strings.HasPrefix(reason, "its tree ") && !strings.HasSuffix(reason, " has replaced it"):
		s.Differs = reason
	case strings.HasPrefix(reason, "election port "):
		s.ClosedPort = reason
	}
}

// instant parses a time of a server; nil: it is not one.
func instant(text string) *time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &at
}

// Behind returns by how many transactions a server with zxid own is behind a leader. ok is
// false if the zxids cannot be compared, because their epochs differ.
func Behind(leader, own string) (n int64, ok bool) {
	l, errL := strconv.ParseInt(leader, 0, 64)
	o, errO := strconv.ParseInt(own, 0, 64)
	if errL != nil || errO != nil || l>>32 != o>>32 {
		return 0, false
	}
	return max(l-o, 0), true
}
