package view

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/fourletter"
	"bellwether/internal/peerwire"
	"bellwether/internal/server"
)

// Ensemble is the state of all servers, as this one knows it.
type Ensemble struct {
	At         time.Time `json:"at"`
	Standalone bool      `json:"standalone"`
	Self       int64     `json:"self"`             // id of this server; 0 if it is standalone
	Leader     *int64    `json:"leader,omitempty"` // nil: this server knows of none
	Epoch      int64     `json:"epoch"`            // of the last term in which this server served
	Servers    []Member  `json:"servers"`
	Counts     Counts    `json:"counts"`
}

// Counts are the sizes of the tree, and the watches of this server's clients.
type Counts struct {
	Nodes      int64 `json:"nodes"`
	DataBytes  int64 `json:"data_bytes"`
	Sessions   int64 `json:"sessions"`
	Ephemerals int64 `json:"ephemerals"`
	Watches    int64 `json:"watches"`
}

// Member is one server.
type Member struct {
	ID          int64      `json:"id"`
	Self        bool       `json:"self"`
	Role        string     `json:"role"`    // participant, observer or standalone: its place in the configuration
	Address     string     `json:"address"` // where clients connect; empty if it is not known
	Mode        string     `json:"mode"`    // leader, follower, observer, standalone, looking, read-only, not serving or unreachable
	Zxid        string     `json:"zxid,omitempty"`
	Behind      *int64     `json:"behind,omitempty"` // transactions that the leader has and this one lacks
	Since       *time.Time `json:"since,omitempty"`  // when it began to serve in this mode
	Started     *time.Time `json:"started,omitempty"`
	Connections int        `json:"connections"`
	Outstanding int        `json:"outstanding"`
	Watches     *int64     `json:"watches,omitempty"`
	Latency     *Latency   `json:"latency,omitempty"`
	Disk        *Disk      `json:"disk,omitempty"`
	Version     string     `json:"version,omitempty"`
	Reason      string     `json:"reason,omitempty"`  // why it accepts no writes or serves only in part
	Missing     string     `json:"missing,omitempty"` // why some figures are not known
	Error       string     `json:"error,omitempty"`   // why it is unreachable

	serves int64 // epoch in which it serves; 0: not known
}

// Serves reports whether the server answers clients in its mode.
func (m *Member) Serves() bool {
	return slices.Contains([]string{"leader", "follower", "observer", "standalone"}, m.Mode)
}

// Latency is the time that requests took since the figures were last reset.
type Latency struct {
	MinMS     float64 `json:"min_ms"`
	AverageMS float64 `json:"average_ms"`
	MaxMS     float64 `json:"max_ms"`
}

// Disk is the size of the files of a server.
type Disk struct {
	SnapshotBytes int64  `json:"snapshot_bytes"`
	LogBytes      int64  `json:"log_bytes"`
	Slow          string `json:"slow,omitempty"` // the call that the disk has not answered
}

// How often the figures are read, for all viewers together, and how long the other servers may
// take to answer.
const (
	pollEvery   = time.Second
	pollTimeout = time.Second
)

// Ensemble returns the figures of all servers. They are up to pollEvery old.
func (v *View) Ensemble(ctx context.Context) *Ensemble {
	return v.ensemble.get(pollEvery, func() *Ensemble { return v.poll(context.WithoutCancel(ctx)) })
}

// poll asks all servers.
func (v *View) poll(ctx context.Context) *Ensemble {
	e := &Ensemble{At: time.Now().UTC(), Counts: v.counts()}
	cfg := v.srv.Config()
	if cfg.Standalone() {
		e.Standalone, e.Servers = true, []Member{v.self(ensemble.Server{})}
		return e
	}
	e.Self = int64(cfg.Ensemble.ID)
	members := cfg.Ensemble.Members.Servers()
	e.Servers = make([]Member, len(members))
	var asking sync.WaitGroup
	for i, m := range members { // at the same time, so that zxids can be compared
		asking.Go(func() {
			if m.ID == cfg.Ensemble.ID {
				e.Servers[i] = v.self(m)
			} else {
				e.Servers[i] = v.other(ctx, m)
			}
		})
	}
	asking.Wait()
	e.lead(v.srv)
	return e
}

// lead finds out who leads, and how far the others are behind.
func (e *Ensemble) lead(s *server.Server) {
	if st := s.ReplicaStatus(); st != nil {
		e.Epoch = int64(st.Epoch)
		if st.Serving && st.Leader != peerwire.NoServer {
			leader := int64(st.Leader)
			e.Leader = &leader
		}
	}
	at := slices.IndexFunc(e.Servers, func(m Member) bool { return m.Mode == "leader" })
	if at < 0 {
		return
	}
	for i := range e.Servers {
		if m := &e.Servers[i]; m.Mode == "follower" || m.Mode == "observer" {
			m.Behind = m.behind(e.Servers[at].Zxid)
		}
	}
}

// behind returns how many transactions a learner lacks; nil: this is not known. A learner that serves in the epoch of
// the leader has all transactions of earlier epochs.
func (m *Member) behind(leader string) *int64 {
	if n, ok := fourletter.Behind(leader, m.Zxid); ok {
		return &n
	}
	zxid, err := strconv.ParseInt(leader, 0, 64)
	if err != nil || m.serves != zxid>>32 {
		return nil
	}
	n := zxid & 0xffffffff // none of the epoch has arrived
	return &n
}

func (v *View) counts() Counts {
	c := v.srv.Tree().Counts()
	return Counts{Nodes: c.Nodes, DataBytes: c.DataBytes, Sessions: c.Sessions, Ephemerals: c.Ephemerals, Watches: c.Watches}
}

// self describes this server.
func (v *View) self(m ensemble.Server) Member {
	st := v.srv.Status()
	started := startOf(st.Uptime)
	watches := v.srv.Tree().Counts().Watches
	why := st.Partial()
	if st.Reason != "" {
		why = append([]string{st.Reason}, why...)
	}
	o := Member{
		ID: int64(m.ID), Self: true, Role: "standalone", Mode: st.Mode, Zxid: st.Zxid.String(), Started: &started, Since: &started,
		Connections: st.Connections, Outstanding: int(st.Outstanding), Watches: &watches, Version: v.version, Reason: strings.Join(why, "; "),
		Latency: &Latency{st.LatencyMin, st.LatencyAverage, st.LatencyMax},
	}
	if at := firstAddr(v.srv.Addr(), v.srv.SecureAddr()); at != nil {
		o.Address = at.String()
	}
	if !v.srv.Config().Standalone() {
		o.Role, o.Since = roleOf(m), nil
		if e := serving(v.srv); e != nil {
			since := servesSince(e)
			o.Since, o.serves = &since, int64(e.Epoch)
		}
	}
	if sizes, err := v.srv.Sizes(); err == nil {
		o.Disk = &Disk{SnapshotBytes: sizes.Snapshots, LogBytes: sizes.Logs}
		if st.Disk != nil {
			o.Disk.Slow = st.Disk.String()
		}
	} else {
		o.Missing = "the sizes of the files are not known: " + err.Error()
	}
	switch {
	case st.ReadOnly:
		o.Mode = "read-only"
	case !v.srv.Serving() && st.Mode != "looking":
		o.Mode = "not serving"
	}
	return o
}

// firstAddr returns the first address that is not nil.
func firstAddr(addrs ...net.Addr) net.Addr {
	for _, a := range addrs {
		if a != nil {
			return a
		}
	}
	return nil
}

// startOf returns when a server with this uptime started. It rounds to the second, so that all reads give one time.
func startOf(uptime time.Duration) time.Time { return time.Now().Add(-uptime).Round(time.Second).UTC() }

func roleOf(m ensemble.Server) string {
	if m.Role == ensemble.Observer {
		return "observer"
	}
	return "participant"
}

// serving returns the election in which a server of an ensemble got its role; nil: it does not serve.
func serving(s *server.Server) *server.Election {
	all := s.Elections()
	if len(all) == 0 || all[len(all)-1].Phase != election.Serve {
		return nil
	}
	return &all[len(all)-1]
}

// servesSince returns when a server began to serve after an election.
func servesSince(e *server.Election) time.Time {
	took := e.PhaseMS[election.Search] + e.PhaseMS[election.Discover] + e.PhaseMS[election.Synchronise]
	return e.Began.Add(time.Duration(took) * time.Millisecond).UTC()
}

// other describes another server by its answers to four-letter words.
func (v *View) other(ctx context.Context, m ensemble.Server) Member {
	o := Member{ID: int64(m.ID), Role: roleOf(m), Address: v.clientAddress(m), Mode: "unreachable"}
	if o.Address == "" {
		o.Error = "its client address is not known: add it to its server line, as in server.N=host:2888:3888;2181"
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	text, err := v.ask(ctx, o.Address, "srvr") // before the others: it counts the connections that are open meanwhile
	if err != nil && text == "" {
		o.Error = err.Error()
		return o
	}
	answers := map[string]string{"srvr": text}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, word := range []string{"mntr", "dirs", "elog"} {
		asking.Go(func() {
			text, _ := v.ask(ctx, o.Address, word) // a word without an answer is named as missing
			mu.Lock()
			defer mu.Unlock()
			answers[word] = text
		})
	}
	asking.Wait()
	o.answered(answers)
	return o
}

// answered fills in what a server has answered.
func (m *Member) answered(answers map[string]string) {
	s := fourletter.ParseSrvr(answers["srvr"])
	m.Mode, m.Zxid, m.Version, m.Reason, m.Outstanding = s.Mode, s.Zxid, s.Version, s.Reason, s.Outstanding
	m.Connections = max(s.Connections-1, 0) // without the one that has asked
	m.Latency = latencyOf(s.Latency)
	if s.Mode == "" {
		m.Mode, m.Reason = "not serving", fourletter.Clip(fourletter.Clean(strings.TrimSpace(answers["srvr"])), fourletter.ValueMax)
		return
	}
	var refused []string
	if figures := fourletter.ParseMntr(answers["mntr"]); len(figures) > 0 {
		watches, started := int64(figures["watch_count"]), startOf(time.Duration(figures["uptime"])*time.Millisecond)
		m.Watches, m.Started = &watches, &started
	} else {
		refused = append(refused, "mntr")
	}
	if snapshots, logs, ok := fourletter.ParseDirs(answers["dirs"]); ok {
		m.Disk = &Disk{SnapshotBytes: snapshots, LogBytes: logs}
	} else {
		refused = append(refused, "dirs")
	}
	if e, err := fourletter.Serving(answers["elog"]); err == nil && e != nil {
		since := e.Since().UTC()
		m.Since, m.serves = &since, e.Epoch
	} else {
		refused = append(refused, "elog")
	}
	if len(refused) > 0 {
		m.Missing = "the server does not answer " + strings.Join(refused, ", ") + ": add them to its 4lw.commands.whitelist"
	}
}

// latencyOf parses the latency of srvr: minimum/average/maximum.
func latencyOf(text string) *Latency {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return nil
	}
	var ms [3]float64
	for i, p := range parts {
		var err error
		if ms[i], err = strconv.ParseFloat(p, 64); err != nil {
			return nil
		}
	}
	return &Latency{ms[0], ms[1], ms[2]}
}

// clientAddress returns the address at which clients connect to a server; empty: it is not known.
// It is the client address of the server line. If the line has none and the server runs on
// another machine, the server is assumed to use the same client port as this one. A wildcard is
// replaced by the host name for connections between servers.
func (v *View) clientAddress(m ensemble.Server) string {
	at := m.Client
	if self, _ := v.srv.Config().Ensemble.Members.Server(v.srv.Config().Ensemble.ID); at.IsZero() && self.Addresses[0].Host == m.Addresses[0].Host {
		return "" // both run on one machine, so their ports differ
	}
	if own, ok := firstAddr(v.srv.Addr(), v.srv.SecureAddr()).(*net.TCPAddr); at.IsZero() && ok {
		at.Port = own.Port
	}
	if at.IsWildcard() || at.Host == "" {
		at.Host = m.Addresses[0].Host
	}
	if at.Port == 0 {
		return ""
	}
	return at.String()
}

// ask sends a four-letter word to a server and returns the answer. It uses TLS if the clients of
// this server must use TLS.
func (v *View) ask(ctx context.Context, address, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	if v.srv.Addr() == nil {
		host, _, _ := net.SplitHostPort(address)
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		config := v.srv.DialTLS(ctx, host, from.Addr())
		if config == nil {
			conn.Close()
			return "", errors.New("its clients use TLS, for which this server has no certificate")
		}
		conn = tls.Client(conn, config)
	}
	return fourletter.Ask(ctx, conn, word, pollTimeout)
}
