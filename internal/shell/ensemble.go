package shell

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/fourletter"
)

// serverStatus is the status of one server, mainly from srvr.
type serverStatus struct {
	Server      string `json:"server"`
	Mode        string `json:"mode"` // leader, follower, standalone, … or unreachable
	Zxid        string `json:"zxid,omitempty"`
	Version     string `json:"version,omitempty"`
	Latency     string `json:"latency_ms_min_avg_max,omitempty"`
	Received    int64  `json:"received"` // requests since the start
	Connections int    `json:"connections"`
	Outstanding int    `json:"outstanding"`
	Nodes       int    `json:"nodes"`
	AnswerUS    int64  `json:"answer_us,omitempty"`
	Writes      bool   `json:"writes"`              // the server accepts writes
	Reason      string `json:"reason,omitempty"`    // why it accepts no writes or serves only in part, if the server says so
	SlowDisk    string `json:"slow_disk,omitempty"` // how slow its disk is, if it is
	Unfit       string `json:"unfit,omitempty"`     // a leader: the servers that should not lead, and why
	Prefers     string `json:"prefers,omitempty"`   // a leader: the server that it will make the leader, and when
	Error       string `json:"error,omitempty"`

	// Epoch and Since are set for a leader that records its elections.
	Epoch int64      `json:"epoch,omitempty"`
	Since *time.Time `json:"leads_since,omitempty"`
	// ClientCertificate and QuorumCertificate say when the first certificate expires: the server's own
	// or one of its issuers. nil: the server has no TLS of that kind, or does not say.
	ClientCertificate *time.Time `json:"client_certificate_expires,omitempty"`
	QuorumCertificate *time.Time `json:"quorum_certificate_expires,omitempty"`
	// Behind is how many transactions fewer than the leader a follower or observer had
	// applied when both were asked, at about the same time.
	Behind *int64 `json:"behind,omitempty"`
}

func newStatus(base maker) *cobra.Command {
	a := base()
	c := &cobra.Command{
		Use:   "status",
		Short: "show the servers: who leads, zxid, connections, latency",
		Long: "Ask each server of --server, by the four-letter word srvr, for its role and metrics. This works with\n" +
			"every ZooKeeper server. The lines below the table name the leader, its epoch and since when it leads, if the\n" +
			"leader records this (Bellwether's word elog), which disks are slow, how many transactions the others are behind the leader, and when\n" +
			"the certificates of servers with TLS expire, with a warning 30, 7 and 1 days before.\n" +
			"\n" +
			"Exit status: 0 all servers accept writes; 1 a server does not answer, does not serve, is read-only, or\n" +
			"serves only in part (the lines below the table say which and why); 2 usage; 4 no server answers and serves.",
		Example: "  bellwether status --server zk1,zk2,zk3 -o json",
		Args:    argCount(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
	a.serverFlags(c)
	a.outputFlag(c)
	return c
}

func (a *app) status(ctx context.Context) error {
	servers := a.serverList()
	all := make([]serverStatus, len(servers))
	var asked sync.WaitGroup
	for i, server := range servers { // at the same time, so that zxids can be compared
		asked.Go(func() { all[i] = a.askServer(ctx, server) })
	}
	asked.Wait()
	compare(all)
	if err := a.printStatus(all); err != nil {
		return err
	}
	if status := exitOf(all); status != ExitDone {
		return &StatusError{Status: status}
	}
	return nil
}

// serverList returns the addresses of the servers, each with a port.
func (a *app) serverList() []string {
	hosts, _, _ := strings.Cut(a.servers, "/")
	servers := strings.Split(hosts, ",")
	for i, h := range servers {
		servers[i] = withPort(strings.TrimSpace(h))
	}
	return servers
}

// exitOf returns the exit status that tells scripts the state of the servers.
func exitOf(all []serverStatus) int {
	answered, well := 0, 0
	for _, s := range all {
		if s.Error == "" {
			answered++
		}
		if s.Writes && s.Reason == "" {
			well++
		}
	}
	switch {
	case well == len(all):
		return ExitDone
	case answered == 0:
		return ExitNoConnection
	}
	return ExitFailed
}

// withPort adds the default client port to a server without a port.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), "2181")
}

func (a *app) askServer(ctx context.Context, server string) serverStatus {
	begin := time.Now()
	text, err := a.word(ctx, server, "srvr", a.timeout)
	s := parseSrvr(text)
	s.Server = server
	s.Writes = err == nil && slices.Contains([]string{"leader", "follower", "observer", "standalone"}, s.Mode)
	s.AnswerUS = time.Since(begin).Microseconds()
	switch {
	case err != nil:
		s.Mode, s.Error, s.AnswerUS = "unreachable", err.Error(), 0
	case s.Mode == "":
		s.Mode, s.Error = "not serving", cmp.Or(fourletter.Clip(fourletter.Clean(strings.TrimSpace(text)), fourletter.ValueMax), "the server closed the connection without an answer"+a.withoutTLS())
	case s.Mode == "leader":
		if l, err := a.leaderElection(ctx, server, a.timeout); err == nil && l != nil {
			since := l.Since().UTC()
			s.Epoch, s.Since = l.Epoch, &since
		}
	}
	return s
}

// compare computes how far each server is behind the leader.
func compare(all []serverStatus) {
	i := slices.IndexFunc(all, func(s serverStatus) bool { return s.Mode == "leader" })
	if i < 0 {
		return
	}
	for j := range all {
		s := &all[j]
		if s.Mode != "follower" && s.Mode != "observer" {
			continue
		}
		if behind, ok := fourletter.Behind(all[i].Zxid, s.Zxid); ok {
			s.Behind = &behind
		}
	}
}

// parseSrvr parses the answer to srvr.
func parseSrvr(text string) serverStatus {
	v := fourletter.ParseSrvr(text)
	return serverStatus{
		Mode: v.Mode, Zxid: v.Zxid, Version: v.Version, Latency: v.Latency, Received: v.Received, Connections: v.Connections, Outstanding: v.Outstanding,
		Nodes: v.Nodes, Reason: v.Reason, SlowDisk: v.SlowDisk, Unfit: v.Unfit, Prefers: v.Prefers, ClientCertificate: v.ClientCertificate, QuorumCertificate: v.QuorumCertificate,
	}
}
