package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// wordMax is the most that is read of an answer to a four-letter word, in bytes.
const wordMax = 1 << 20

// serverStatus is one server as srvr shows it.
type serverStatus struct {
	Server      string `json:"server"`
	Mode        string `json:"mode"` // leader, follower, standalone, …; unreachable
	Zxid        string `json:"zxid,omitempty"`
	Version     string `json:"version,omitempty"`
	Latency     string `json:"latency_ms_min_avg_max,omitempty"`
	Connections int    `json:"connections"`
	Outstanding int    `json:"outstanding"`
	Nodes       int    `json:"nodes"`
	AnswerUS    int64  `json:"answer_us,omitempty"`
	Reason      string `json:"reason,omitempty"` // why it takes no writes, where it says so
	Error       string `json:"error,omitempty"`

	// Of a leader that keeps a record of its elections.
	Epoch int64      `json:"epoch,omitempty"`
	Since *time.Time `json:"leads_since,omitempty"`
	// Behind is how many transactions a follower or observer had applied less
	// than the leader, the two being asked at about the same time.
	Behind *int64 `json:"behind,omitempty"`
}

func newStatus() *cobra.Command {
	a := newApp()
	c := &cobra.Command{
		Use:   "status",
		Short: "the servers at a glance: who leads, zxid, connections, latency",
		Long: "Ask each server of --server, by the four-letter word srvr, for its role and figures. It works with\n" +
			"every ZooKeeper server. Below them it says who leads, in which epoch and since when, as far as the leader\n" +
			"tells (Bellwether's word elog), and who is behind the leader by how many transactions.\n" +
			"The exit status is 0 if all answered and serve, 1 if some did not, 4 if none.",
		Example: "  bellwether status --server zk1,zk2,zk3 -o json",
		Args:    argCount(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
	a.serverFlags(c)
	a.outputFlag(c)
	return c
}

func (a *app) status(ctx context.Context) error {
	hosts, _, _ := strings.Cut(a.servers, "/")
	servers := strings.Split(hosts, ",")
	all := make([]serverStatus, len(servers))
	var asked sync.WaitGroup
	for i, h := range servers { // at the same time, so that zxids can be compared
		asked.Go(func() { all[i] = a.askServer(ctx, withPort(h)) })
	}
	asked.Wait()
	serving := 0
	for _, s := range all {
		if s.Error == "" {
			serving++
		}
	}
	compare(all)
	if err := a.printStatus(all); err != nil {
		return err
	}
	switch serving {
	case len(all):
		return nil
	case 0:
		return &StatusError{Status: ExitNoConnection}
	}
	return &StatusError{Status: ExitFailed}
}

// withPort adds the client port where a server is named without one.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), "2181")
}

func (a *app) askServer(ctx context.Context, server string) serverStatus {
	begin := time.Now()
	text, err := word(ctx, server, "srvr", a.timeout)
	s := parseSrvr(text)
	s.Server = server
	s.AnswerUS = time.Since(begin).Microseconds()
	switch {
	case err != nil:
		s.Mode, s.Error, s.AnswerUS = "unreachable", err.Error(), 0
	case s.Mode == "":
		s.Mode, s.Error = "not serving", strings.TrimSpace(text)
	case s.Mode == "leader":
		if l, err := leaderElection(ctx, server, a.timeout); err == nil && l != nil {
			since := l.Since().UTC()
			s.Epoch, s.Since = l.Epoch, &since
		}
	}
	return s
}

// compare notes who is how far behind the leader.
func compare(all []serverStatus) {
	i := slices.IndexFunc(all, func(s serverStatus) bool { return s.Mode == "leader" })
	if i < 0 {
		return
	}
	leader, err := strconv.ParseInt(all[i].Zxid, 0, 64)
	for i := range all {
		s := &all[i]
		own, ownErr := strconv.ParseInt(s.Zxid, 0, 64)
		if err == nil && ownErr == nil && own>>32 == leader>>32 && (s.Mode == "follower" || s.Mode == "observer") {
			behind := max(leader-own, 0)
			s.Behind = &behind
		}
	}
}

// word asks a server a four-letter word.
func word(ctx context.Context, server, w string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(timeout))
	if _, err := io.WriteString(conn, w); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(conn, wordMax))
	return string(b), err
}

// parseSrvr reads the answer to srvr; what it does not know it passes over.
func parseSrvr(text string) serverStatus {
	var s serverStatus
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, ",")
		case "Latency min/avg/max":
			s.Latency = value
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
		case "Read-only because":
			s.Reason = value
		}
	}
	return s
}

func (a *app) printStatus(all []serverStatus) error {
	if a.json() {
		return printJSON(a.out, all)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tMODE\tZXID\tNODES\tCONNECTIONS\tOUTSTANDING\tLATENCY ms\tVERSION")
	for _, s := range all {
		if s.Error != "" {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\n", s.Server, s.Mode)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n",
			s.Server, s.Mode, s.Zxid, s.Nodes, s.Connections, s.Outstanding, s.Latency, s.Version)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, glance(all))
	return err
}

// glance says how the ensemble stands; nothing of a standalone server.
func glance(all []serverStatus) string {
	var b strings.Builder
	for _, s := range all {
		if s.Since != nil {
			fmt.Fprintf(&b, "%s leads epoch %d since %s\n", s.Server, s.Epoch, Instant(s.Since.UnixMilli()))
		}
	}
	for _, s := range all {
		if s.Error != "" {
			fmt.Fprintf(&b, "%s does not answer: %s\n", s.Server, s.Error)
		}
	}
	for _, s := range all {
		if s.Reason != "" {
			fmt.Fprintf(&b, "%s takes no writes: %s\n", s.Server, s.Reason)
		}
	}
	for _, s := range all {
		if s.Behind != nil && *s.Behind > 0 {
			fmt.Fprintf(&b, "%s is %s behind\n", s.Server, Count(int(*s.Behind), "transaction"))
		}
	}
	return b.String()
}
