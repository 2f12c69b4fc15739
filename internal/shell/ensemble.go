package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
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
	Error       string `json:"error,omitempty"`
}

func newStatus() *cobra.Command {
	a := newApp()
	c := &cobra.Command{
		Use:   "status",
		Short: "the servers at a glance: who leads, zxid, connections, latency",
		Long: "Ask each server of --server, by the four-letter word srvr, for its role and figures. It works with\n" +
			"every ZooKeeper server. The exit status is 0 if all answered and serve, 1 if some did not, 4 if none.",
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
	var all []serverStatus
	serving := 0
	for h := range strings.SplitSeq(hosts, ",") {
		s := a.askServer(ctx, withPort(h))
		if s.Error == "" {
			serving++
		}
		all = append(all, s)
	}
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
	}
	return s
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
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Server, s.Mode, s.Error)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n",
			s.Server, s.Mode, s.Zxid, s.Nodes, s.Connections, s.Outstanding, s.Latency, s.Version)
	}
	return w.Flush()
}
