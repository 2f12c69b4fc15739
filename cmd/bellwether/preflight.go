package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/config"
	"bellwether/internal/fourletter"
	"bellwether/internal/preflight"
	"bellwether/internal/shell"
)

const preflightLong = `Say whether Bellwether can take over a ZooKeeper server or ensemble, or name what prevents it. Change nothing.

Run it on the machine of the server, while ZooKeeper runs. It examines

  the zoo.cfg           everything that serve --check would refuse, and what has no effect in Bellwether
  the flags of Java     those that have a meaning in Bellwether, and where to write them
  the data directory    whether the newest snapshot loads and the logs can be read, owners, space, memory
  the running servers   versions, members, leader, quorum, followers, by the four-letter words srvr, conf and mntr

Each finding says what was found and where, why it matters, and what to do. It begins with one of four words:

  prevents   the takeover would fail or lose something
  unseen     a part without which there is no verdict could not be examined
  warns      something changes with the takeover, or should be known before it
  fine       the part was examined and needs nothing

The last lines are the verdict and the next step of docs/migrate.md.

The flags of Java are those of SERVER_JVMFLAGS and JVMFLAGS, after the files zookeeper-env.sh (or --env-file) and
java.env beside zoo.cfg. --pid adds those of the running process, from its command line and from the variables
JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS and _JAVA_OPTIONS of its environment; --jvm-flags adds others. The servers are those of
the server lines, with their client ports. If clients must use TLS, give the --tls flags.

The command opens no file for writing, takes no port, opens no session, and sends nothing to a server that changes
it. To see whether the ports between servers can be reached, it connects to them and closes the connection, which the
servers log.

Exit status: 0 yes; 1 no, something prevents it; 2 the verdict is unknown, because something could not be examined, or a
flag is wrong.`

// preflightFlags are the flags of preflight.
type preflightFlags struct {
	outputFlag
	config, jvm, env string
	pid              int
	live             string
	offline          bool
	port             portFlags
}

func newPreflight() *cobra.Command {
	var f preflightFlags
	c := &cobra.Command{
		Use:     "preflight --config FILE",
		Short:   "say what prevents a takeover of a ZooKeeper, and change nothing",
		Long:    preflightLong,
		Example: "  bellwether preflight --config /etc/zookeeper/conf/zoo.cfg\n  bellwether preflight --config zoo.cfg --jvm-flags '-Djute.maxbuffer=4194304' --live zk1:2181,zk2:2181,zk3:2181 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.config == "" {
				return shell.Usage(errors.New("name the zoo.cfg with --config"))
			}
			p := &preflightRun{flags: &f, report: &preflight.Report{Findings: []preflight.Finding{}}}
			if err := p.look(cmd.Context()); err != nil {
				return shell.Usage(err)
			}
			return p.end(cmd.OutOrStdout())
		},
	}
	f.add(c)
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "the server's zoo.cfg")
	fl.StringVar(&f.jvm, "jvm-flags", "", "further `FLAGS` with which Java is started, as one word")
	fl.StringVar(&f.env, "env-file", "", "shell `FILE` that sets SERVER_JVMFLAGS or JVMFLAGS (default zookeeper-env.sh beside zoo.cfg)")
	fl.IntVar(&f.pid, "pid", 0, "`ID` of the running ZooKeeper's process, to read its command line and environment (Linux)")
	fl.StringVar(&f.live, "live", "", "client addresses `HOST:PORT,...` of all running servers (default those of zoo.cfg)")
	fl.BoolVar(&f.offline, "offline", false, "do not ask the running servers")
	f.port.add(c, "for the running servers")
	c.MarkFlagsMutuallyExclusive("live", "offline")
	return c
}

// preflightRun is one run of the command.
type preflightRun struct {
	flags  *preflightFlags
	report *preflight.Report
	held   *preflight.Data // nil: the data could not be read
	next   string
}

// look examines everything. An error means that the command line or the files that it names cannot be used.
func (p *preflightRun) look(ctx context.Context) error {
	if p.flags.port.timeout <= 0 {
		return fmt.Errorf("--connect-timeout %v: want more than 0", p.flags.port.timeout)
	}
	all, seen, err := p.jvmFlags()
	if err != nil {
		return err
	}
	c, refused := config.Examine(p.flags.config, all)
	if bad := (*config.Error)(nil); refused != nil && !errors.As(refused, &bad) {
		return refused
	}
	p.report.Add(preflight.Settings(c, refused)...)
	p.report.Add(preflight.Moved(c, refused, all, seen)...)
	if c == nil {
		p.notExamined("the data and the running servers", "correct what prevents a start first: it is not known where they are")
		return nil
	}
	if refused != nil {
		p.notExamined("certificates, logins, addresses and ports", "correct what prevents a start first, and run this command again")
	} else {
		p.report.Fine(c.File, "the settings can be used: %s", clientText(c))
		p.machine(ctx, c)
	}
	p.data(c)
	return p.servers(ctx, c)
}

// notExamined adds a finding for a part that was left out because of the settings.
func (p *preflightRun) notExamined(what, do string) {
	p.report.Add(preflight.Finding{Severity: preflight.Unseen, Where: p.flags.config, What: what + " were not examined", Do: do})
}

// jvmFlags returns all flags of Java, and those that serve reads by itself.
func (p *preflightRun) jvmFlags() (all, seen []string, err error) {
	env := environment()
	file := cmp.Or(p.flags.env, filepath.Join(filepath.Dir(p.flags.config), "zookeeper-env.sh"))
	vars, err := config.EnvironmentFile(file, env)
	switch {
	case err == nil:
		env = vars
	case p.flags.env != "" || !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	}
	own, err := config.JVMFlags(p.flags.config, nil)
	if err != nil {
		return nil, nil, err
	}
	started, err := config.JVMFlags(p.flags.config, env)
	if err != nil {
		return nil, nil, err
	}
	running, err := p.process()
	return slices.Concat(strings.Fields(started), running, strings.Fields(p.flags.jvm)), strings.Fields(own), err
}

// process returns the flags of the running process, if its id was given.
func (p *preflightRun) process() ([]string, error) {
	if p.flags.pid == 0 {
		return nil, nil
	}
	running, err := preflight.ReadProcess("/proc", p.flags.pid)
	if err != nil {
		return nil, fmt.Errorf("--pid: %w", err)
	}
	p.report.Add(running.SameConfig(p.flags.config)...)
	p.report.Add(running.Hidden...)
	return running.Flags, nil
}

// servers asks the running servers.
func (p *preflightRun) servers(ctx context.Context, c *config.Config) error {
	if p.flags.offline {
		p.report.Add(preflight.Finding{Severity: preflight.Warns, Where: "ensemble", What: "the running servers were not asked (--offline)",
			Why: "versions, members, leader and quorum are unknown", Do: "run the command without --offline before the takeover"})
		p.next = "run this command without --offline"
		return nil
	}
	servers := preflight.Servers(c)
	if p.flags.live != "" {
		var err error
		if servers, err = hostPorts("--live", p.flags.live); err != nil {
			return err
		}
	}
	if len(servers) == 0 {
		p.report.Add(preflight.Finding{Severity: preflight.Unseen, Where: c.File, What: "no client port of a running server is known", Do: "name the servers with --live"})
		return nil
	}
	ask, end, err := p.asker(c)
	if err != nil {
		return err
	}
	defer end()
	members := preflight.Ask(ctx, ask, servers)
	for _, m := range members {
		if m.Err == nil {
			p.report.Fine(m.Server, "%s, version %s, zxid %s", cmp.Or(m.Srvr.Mode, "does not serve"), cmp.Or(m.Srvr.Version, "unknown"), cmp.Or(m.Srvr.Zxid, "unknown"))
		}
	}
	live := preflight.NewLive(c, members)
	p.report.Add(live.Judge()...)
	p.belongs(c, live)
	p.report.Add(p.ports(ctx, c, live)...)
	p.next = live.Next()
	return nil
}

// belongs compares the data with the running servers.
func (p *preflightRun) belongs(c *config.Config, live *preflight.Live) {
	if p.held == nil {
		return
	}
	epoch, ok, err := preflight.CurrentEpoch(c.DataDir)
	if err != nil {
		p.unread(c, err)
		return
	}
	p.report.Add(p.held.Belongs(live, c.DataDir, epoch, ok)...)
}

// asker returns how to ask a server for a word, and a function that releases what that needs.
func (p *preflightRun) asker(c *config.Config) (preflight.Asker, func(), error) {
	dial := func(ctx context.Context, server string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}
	end := func() {}
	if p.flags.port.given() || c.Client.IsZero() && !c.TLS.Client.IsZero() {
		secured, err := p.flags.port.load()
		if err != nil {
			return nil, nil, err
		}
		dial, end = secured.Dial, secured.Close
	}
	return func(ctx context.Context, server, word string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, p.flags.port.timeout)
		defer cancel()
		conn, err := dial(ctx, server)
		if err != nil {
			return "", err
		}
		return fourletter.Ask(ctx, conn, word, p.flags.port.timeout)
	}, end, nil
}

// preflightJSON is the report in a form for programs.
type preflightJSON struct {
	Verdict string `json:"verdict"`
	*preflight.Report
	Next string `json:"next,omitempty"` // the next step, if the verdict is yes
}

// end prints the report and returns the error with its exit status.
func (p *preflightRun) end(w io.Writer) error {
	p.report.Sort()
	verdict := p.report.Verdict()
	if verdict != preflight.Yes {
		p.next = ""
	}
	var err error
	switch {
	case p.flags.json():
		err = json.NewEncoder(w).Encode(preflightJSON{verdict, p.report, p.next})
	default:
		if err = p.report.Print(w); err == nil && p.next != "" {
			_, err = fmt.Fprintf(w, "next: %s\n", p.next)
		}
	}
	switch {
	case err != nil:
		return err
	case verdict == preflight.No:
		return &shell.StatusError{Status: shell.ExitFailed}
	case verdict == preflight.Unknown:
		return &shell.StatusError{Status: shell.ExitUsage}
	}
	return nil
}

// dataDirs returns the data directories of a configuration, each once.
func dataDirs(c *config.Config) []string { return slices.Compact([]string{c.DataDir, c.DataLogDir}) }
