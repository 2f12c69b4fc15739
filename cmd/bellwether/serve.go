package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/shell"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	config, data, listen string
	logFormat, logLevel  string
	check                bool
	faults               string // of --faults: where calls are taken; empty: not
	servers              int    // of --ensemble; 0: one server
	memory, noSync       bool   // with --faults: nothing on a disk, or not at once
	whileStdin           bool   // end with the standard input
}

const serveLong = `Run a server until SIGTERM or SIGINT.

Without --config it is a working standalone server: it listens on 127.0.0.1:2181 and keeps its data in
./bellwether-data. With --config it takes ZooKeeper's zoo.cfg as it is, and listens where ZooKeeper would, which
without clientPortAddress is every address of the machine. JVMFLAGS and SERVER_JVMFLAGS are read for -D settings.

With --ensemble N it runs N servers on this machine that elect a leader and replicate: each a process of its own, in
a folder of its own below --data (default ./bellwether-ensemble), with the client ports 2181, 2182, … or from --listen
on. Each line of the log begins with the server's number. A server that is killed is started again after 3 s; one that
fails within a minute of its first start ends them all. They end together.

With --ensemble N --faults the servers run within this one process, and do what tests of other programs need: HTTP
calls on a loopback port, which is printed at the start, expire a session, cut or delay a link one way, pause, kill or
crash a server, lose a reply, delay watches, skew a clock. GET / lists the servers and what is wrong; docs/faults.md has
all calls. Sessions are of 1 s to 60 s. The data in --data is the same with and without --faults; --memory keeps none,
and with --no-sync a crash loses what was acknowledged last. For example:

  POST /servers/2/pause                       POST /servers/2/resume
  POST /servers/1/crash                       POST /servers/1/start, then POST /await
  POST /links/1/2/cut?oneway                  POST /links/clients/3/delay?by=200ms
  POST /sessions/0x100000000000001/expire     POST /replies/create/lose
  POST /watches/delay?by=2s                   POST /servers/3/skew?by=-1h
  POST /heal

Signals: SIGTERM or SIGINT ends it cleanly, a second one at once; SIGHUP reads the configuration again;
SIGUSR1 logs more, SIGUSR2 less; with --ensemble those three are for the process of one server. Killing it in any
way loses nothing that was acknowledged.

Exit status: 0 ended by a signal, 1 failed, 2 the configuration or a flag is wrong, 128+n ended at once by a second
signal.`

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "run a server",
		Long:    serveLong,
		Example: "  bellwether serve\n  bellwether serve --config /etc/zookeeper/conf/zoo.cfg\n  bellwether serve --config zoo.cfg --check\n  bellwether serve --ensemble 3\n  bellwether serve --ensemble 3 --faults=127.0.0.1:7000 --memory",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !f.check {
				signal.Ignore(syscall.SIGPIPE) // who reads the log may end first
				cmd.SetOut(os.Stdout)          // a server goes on when a line is not written, and its status does not depend on it
			}
			if f.faults == "" && (f.memory || f.noSync) {
				return shell.Usage(errors.New("--memory and --no-sync need --faults"))
			}
			if cmd.Flags().Changed("ensemble") {
				if f.data == "" {
					f.data = "bellwether-ensemble"
				}
				if !cmd.Flags().Changed("log-format") {
					f.logFormat = "brief"
				}
				if f.faults != "" {
					return f.faulty(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
				}
				return f.ensemble(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if f.faults != "" {
				return shell.Usage(errors.New("--faults needs --ensemble N; 1 is a server alone"))
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "zoo.cfg to take as it is")
	fl.StringVar(&f.data, "data", "", "data directory, without --config (default ./bellwether-data, ./bellwether-ensemble)")
	fl.StringVar(&f.listen, "listen", "", "client address host:port, without --config (default 127.0.0.1:2181; port 0: any free one)")
	fl.IntVar(&f.servers, "ensemble", 0, "run so many servers on this machine")
	fl.StringVar(&f.faults, "faults", "", "with --ensemble: take calls for faults, on any loopback port or --faults=host:port")
	fl.Lookup("faults").NoOptDefVal = faultsAnywhere
	fl.BoolVar(&f.memory, "memory", false, "with --faults: keep the data in memory instead of --data")
	fl.BoolVar(&f.noSync, "no-sync", false, "with --faults: acknowledge before data is on disk, so that a crash loses some")
	fl.BoolVar(&f.whileStdin, "while-stdin", false, "end when the standard input ends, as it does with the process at its other end")
	fl.BoolVar(&f.check, "check", false, "only check the configuration, directories and ports, say what a start would say, and exit")
	fl.StringVar(&f.logFormat, "log-format", "text", "text, json, or brief, to stderr; brief is the default of --ensemble")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	c.MarkFlagsMutuallyExclusive("config", "data")
	c.MarkFlagsMutuallyExclusive("config", "listen")
	c.MarkFlagsMutuallyExclusive("config", "ensemble")
	c.MarkFlagsMutuallyExclusive("check", "ensemble")
	c.MarkFlagsMutuallyExclusive("memory", "data")
	return c
}

func (f serveFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	log, level, err := f.logger(stderr)
	if err != nil {
		return shell.Usage(err)
	}
	c, err := f.load()
	if err != nil {
		return shell.Usage(err)
	}
	if f.check {
		return check(stdout, c)
	}
	return f.serve(ctx, c, log, level)
}

// remarks logs which settings have no effect, and which are unwise.
func remarks(c *config.Config) []config.Notice { return slices.Concat(c.Warnings, c.Notices) }

func logRemarks(log *slog.Logger, c *config.Config) {
	for _, r := range remarks(c) {
		log.Warn(r.String())
	}
}

// load makes the configuration from the flags and the environment.
func (f serveFlags) load() (*config.Config, error) {
	if f.config != "" {
		flags, err := config.JVMFlags(f.config, environment())
		if err != nil {
			return nil, err
		}
		return config.Load(f.config, flags)
	}
	c := config.Default()
	if f.data != "" {
		c.DataDir, c.DataLogDir = f.data, f.data
	}
	if f.listen != "" {
		host, port, err := net.SplitHostPort(f.listen)
		n, perr := strconv.Atoi(port)
		if err != nil || perr != nil || n < 0 || n > 65535 {
			return nil, fmt.Errorf("--listen %q: want host:port, as in 127.0.0.1:2181 or [::1]:2181", f.listen)
		}
		c.Client = ensemble.HostPort{Host: host, Port: n}
	}
	if c.Client.IsLoopback() {
		c.Limits.ClientCnxns = 0 // all clients are of this machine
		c.FourLetterWords = []string{"*"}
	}
	return c, nil
}

// environment is this process's environment as a map.
func environment() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// logger makes the log; its level can be changed later.
func (f serveFlags) logger(w io.Writer) (*slog.Logger, *slog.LevelVar, error) {
	level := new(slog.LevelVar)
	var l slog.Level
	if err := l.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.logLevel)
	}
	level.Set(l)
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), level, nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), level, nil
	case "brief":
		return slog.New(newBrief(w, level)), level, nil
	}
	return nil, nil, fmt.Errorf("--log-format %q: want text, json or brief", f.logFormat)
}
