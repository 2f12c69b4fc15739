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
	faults               string // --faults: the address for HTTP calls; empty: no faults
	servers              int    // --ensemble: the number of servers; 0: one server without an ensemble
	memory, noSync       bool   // with --faults: keep data in memory; acknowledge writes before they are on the disk
	tls                  bool   // with --ensemble: clients and servers use TLS
	whileStdin           bool   // end when the standard input ends
}

const serveLong = `Run a server until SIGTERM or SIGINT.

Without --config, the command runs a standalone server that listens on 127.0.0.1:2181 and keeps its data in
./bellwether-data. With --config, the server uses an unchanged ZooKeeper zoo.cfg and listens where ZooKeeper would:
without clientPortAddress, on every address of the machine. JVMFLAGS and SERVER_JVMFLAGS are read for -D settings.

With --ensemble N, the command runs N servers on this machine, which elect a leader and replicate. Each server is a
separate process with its own folder below --data (default ./bellwether-ensemble). The client ports are 2181, 2182 and
so on, or those from --listen on. Each line of the log begins with the server's number. A server that is killed is
started again after 3 s. If a server fails within a minute of its first start, all servers end. A signal to the
command ends all servers.

With --ensemble N --tls, clients and servers connect with TLS only. The certificates of a private authority are in the
folder tls below --data; a later start renews them if necessary. The first lines of the output say how to connect.

With --ensemble N --faults, the servers run inside this process, and programs can cause faults by HTTP calls to a
loopback port, which is printed at the start: expire a session, cut or delay a link in one direction, pause, kill or
crash a server, lose a reply, delay watches, skew a clock. GET / lists the servers and the current faults;
docs/faults.md lists all calls. Session timeouts are 1 s to 60 s. Data in --data can be used with and without
--faults. With --memory, no data is kept on a disk. With --no-sync, a crash loses the last acknowledged writes. For
example:

  POST /servers/2/pause                       POST /servers/2/resume
  POST /servers/1/crash                       POST /servers/1/start, then POST /await
  POST /links/1/2/cut?oneway                  POST /links/clients/3/delay?by=200ms
  POST /sessions/0x100000000000001/expire     POST /replies/create/lose
  POST /watches/delay?by=2s                   POST /servers/3/skew?by=-1h
  POST /heal

Signals: SIGTERM or SIGINT ends the server in an orderly way, and a second one ends it at once. SIGHUP reads the
configuration again. SIGUSR1 makes the log more detailed, SIGUSR2 less. With --ensemble, send the last three to the
process of one server. No way to kill a server loses an acknowledged write.

The admin port serves a page, ZooKeeper's commands, health checks and metrics. Without --config it is
http://127.0.0.1:8080/, and if that port is in use, the server runs without it. With --config, the keys admin.* say
where it is. With --ensemble, each server has a free port on 127.0.0.1, which is printed at the start.

Exit status: 0 ended by a signal, 1 failed, 2 the configuration or a flag is wrong, 4 the admin port of a standalone
server with --config is in use, 128+n ended at once by a second signal.`

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "run a server",
		Long:    serveLong,
		Example: "  bellwether serve\n  bellwether serve --config /etc/zookeeper/conf/zoo.cfg\n  bellwether serve --config zoo.cfg --check\n  bellwether serve --ensemble 3\n  bellwether serve --ensemble 3 --faults=127.0.0.1:7000 --memory",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.start(cmd) },
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "path of a zoo.cfg, which may be ZooKeeper's own")
	fl.StringVar(&f.data, "data", "", "data directory, without --config (default ./bellwether-data, ./bellwether-ensemble)")
	fl.StringVar(&f.listen, "listen", "", "client address host:port, without --config (default 127.0.0.1:2181; port 0: any free one)")
	fl.IntVar(&f.servers, "ensemble", 0, "run this number of servers on this machine")
	fl.BoolVar(&f.tls, "tls", false, "with --ensemble: let clients and servers connect with TLS only, by certificates that the command makes")
	fl.StringVar(&f.faults, "faults", "", "with --ensemble: accept calls that cause faults, on a free loopback port or on --faults=host:port")
	fl.Lookup("faults").NoOptDefVal = faultsAnyPort
	fl.BoolVar(&f.memory, "memory", false, "with --faults: keep the data in memory instead of --data")
	fl.BoolVar(&f.noSync, "no-sync", false, "with --faults: acknowledge writes before they are on the disk, so that a crash loses some of them")
	fl.BoolVar(&f.whileStdin, "while-stdin", false, "end when the standard input ends, for example because the process that started this one has ended")
	fl.BoolVar(&f.check, "check", false, "check the configuration, directories and ports, print what a start would log, and exit")
	fl.StringVar(&f.logFormat, "log-format", "text", "form of the log on stderr: text, json or brief; brief is the default with --ensemble")
	fl.StringVar(&f.logLevel, "log-level", "info", "lowest level that is logged: debug, info, warn or error")
	c.MarkFlagsMutuallyExclusive("config", "data")
	c.MarkFlagsMutuallyExclusive("config", "listen")
	c.MarkFlagsMutuallyExclusive("config", "ensemble")
	c.MarkFlagsMutuallyExclusive("check", "ensemble")
	c.MarkFlagsMutuallyExclusive("tls", "faults")
	c.MarkFlagsMutuallyExclusive("memory", "data")
	return c
}

// start runs a server, or an ensemble of them, until a signal.
func (f serveFlags) start(cmd *cobra.Command) error {
	if !f.check {
		signal.Ignore(syscall.SIGPIPE) // the process that reads the log may end before the server
		cmd.SetOut(os.Stdout)          // a server continues when a line of output could not be written, unlike other commands
	}
	if f.faults == "" && (f.memory || f.noSync) {
		return shell.Usage(errors.New("--memory and --no-sync need --faults"))
	}
	if f.tls && f.servers == 0 {
		return shell.Usage(errors.New("--tls needs --ensemble N; with --config, zoo.cfg says what uses TLS"))
	}
	if cmd.Flags().Changed("ensemble") {
		if f.data == "" {
			f.data = "bellwether-ensemble"
		}
		if !cmd.Flags().Changed("log-format") {
			f.logFormat = "brief"
		}
		if f.faults != "" {
			return f.ensembleWithFaults(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		return f.ensemble(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	if f.faults != "" {
		return shell.Usage(errors.New("--faults needs --ensemble N; --ensemble 1 runs a standalone server"))
	}
	return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
}

func (f serveFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	handler, level, err := f.logHandler()
	if err != nil {
		return shell.Usage(err)
	}
	log, out := newLog(stderr, handler)
	defer out.close()
	c, err := f.load()
	if err != nil {
		return shell.Usage(err)
	}
	if f.check {
		return check(stdout, c)
	}
	return f.serve(ctx, c, log, level, out)
}

// remarks returns remarks on the settings that have no effect and on the settings that are unwise.
func remarks(c *config.Config) []config.Notice { return slices.Concat(c.Warnings, c.Notices) }

func logRemarks(log *slog.Logger, c *config.Config) {
	for _, r := range remarks(c) {
		log.Warn(r.String())
	}
}

// loadConfig reads a zoo.cfg as a server would that was started with it in this environment.
func loadConfig(path string) (*config.Config, error) {
	flags, err := config.JVMFlags(path, environment())
	if err != nil {
		return nil, err
	}
	return config.Load(path, flags)
}

// load makes the configuration from the flags and the environment variables.
func (f serveFlags) load() (*config.Config, error) {
	if f.config != "" {
		return loadConfig(f.config)
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
		c.Limits.ClientCnxns = 0 // all clients are on this machine
		c.FourLetterWords = []string{"*"}
	}
	return c, nil
}

// environment returns the environment variables of this process.
func environment() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// logHandler returns a function that makes the handler of the log for an output, and the log's level, which can be changed
// later.
func (f serveFlags) logHandler() (func(io.Writer) slog.Handler, *slog.LevelVar, error) {
	level := new(slog.LevelVar)
	var l slog.Level
	if err := l.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.logLevel)
	}
	level.Set(l)
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, o) }, level, nil
	case "json":
		return func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, o) }, level, nil
	case "brief":
		return func(w io.Writer) slog.Handler { return newBrief(w, level) }, level, nil
	}
	return nil, nil, fmt.Errorf("--log-format %q: want text, json or brief", f.logFormat)
}
