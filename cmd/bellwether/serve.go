package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/admin"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/shell"
)

// serveFlags are what serve was asked.
type serveFlags struct {
	config, data, listen string
	logFormat, logLevel  string
	check                bool
}

const serveLong = `Run a server until SIGTERM or SIGINT.

Without --config it is a working standalone server: it listens on 127.0.0.1:2181 and keeps its data in
./bellwether-data. With --config it takes ZooKeeper's zoo.cfg as it is, and listens where ZooKeeper would, which
without clientPortAddress is every address of the machine. JVMFLAGS and SERVER_JVMFLAGS are read for -D settings.

Signals: SIGTERM or SIGINT ends it cleanly, a second one at once; SIGHUP reads the configuration again;
SIGUSR1 logs more, SIGUSR2 less. Killing it in any way loses nothing that was acknowledged.

Exit status: 0 ended by a signal, 1 failed, 2 the configuration or a flag is wrong.`

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "run a server",
		Long:    serveLong,
		Example: "  bellwether serve\n  bellwether serve --config /etc/zookeeper/conf/zoo.cfg\n  bellwether serve --config zoo.cfg --check",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "zoo.cfg to take as it is")
	fl.StringVar(&f.data, "data", "", "data directory, without --config (default ./bellwether-data)")
	fl.StringVar(&f.listen, "listen", "", "client address host:port, without --config (default 127.0.0.1:2181; port 0: any free one)")
	fl.BoolVar(&f.check, "check", false, "only check the configuration, say what was found, and exit")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json, to stderr")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	c.MarkFlagsMutuallyExclusive("config", "data")
	c.MarkFlagsMutuallyExclusive("config", "listen")
	return c
}

func (f serveFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	log, level, err := f.logger(stderr)
	if err != nil {
		return usage(err)
	}
	c, err := f.load()
	if err != nil {
		return usage(err)
	}
	notices := append(c.Warnings, c.Notices...)
	if f.check {
		for _, n := range notices {
			fmt.Fprintln(stdout, n)
		}
		fmt.Fprintf(stdout, "the configuration is good, with %d remarks\n", len(notices))
		return nil
	}
	for _, n := range notices {
		log.Warn(n.String())
	}
	tuneMemory()
	warnDescriptors(log, c)
	return f.serve(ctx, c, log, level)
}

// load makes the configuration of the flags and the environment.
func (f serveFlags) load() (*config.Config, error) {
	if f.config != "" {
		flags, err := config.JVMFlags(f.config, environment())
		if err != nil {
			return nil, err
		}
		c, err := config.Load(f.config, flags)
		if err != nil {
			return nil, err
		}
		return c, aloneOnly(c)
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

// aloneOnly refuses the configuration of an ensemble, which this version
// cannot serve: a member that keeps to itself would split the history.
func aloneOnly(c *config.Config) error {
	if c.Standalone() {
		return nil
	}
	return fmt.Errorf("%s: names %d voting servers; this version serves alone: leave one server line, or none",
		c.File, len(c.Ensemble.Members.Voters()))
}

// logger makes the log; its level can be changed while it is used.
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
	}
	return nil, nil, fmt.Errorf("--log-format %q: want text or json", f.logFormat)
}

// serve runs the server until a signal or a failure.
func (f serveFlags) serve(ctx context.Context, c *config.Config, log *slog.Logger, level *slog.LevelVar) error {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := server.New(server.Options{Config: c, Log: log, Words: admin.Words(zookeeperVersion())})
	if err != nil {
		return failed(log, err)
	}
	signals := make(chan os.Signal, 8) // more than arrive while one is handled
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		h := signalHandler{flags: f, server: s, log: log, level: level, stop: cancel}
		for {
			select {
			case <-s.Ready():
				log.Info("serving", "address", fmt.Sprint(s.Addr()), "data", c.DataDir, "version", zookeeperVersion(), "after", time.Since(begin))
				h.run(signals, done)
				return
			case sig := <-signals:
				h.handle(sig)
			case <-done:
				return
			}
		}
	}()
	err = s.Run(ctx)
	close(done)
	<-watched
	signal.Stop(signals)
	if err != nil {
		return failed(log, err)
	}
	log.Info("ended")
	return nil
}

// failed logs why the server ended, in the form of the log, and leaves the
// exit status.
func failed(log *slog.Logger, err error) error {
	log.Error(err.Error())
	return &shell.StatusError{Status: shell.ExitFailed}
}

// signalHandler does what signals ask for.
type signalHandler struct {
	flags  serveFlags
	server *server.Server
	log    *slog.Logger
	level  *slog.LevelVar
	stop   func()
	ending bool
}

func (h *signalHandler) run(signals <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case sig := <-signals:
			h.handle(sig)
		case <-done:
			return
		}
	}
}

func (h *signalHandler) handle(sig os.Signal) {
	switch sig {
	case syscall.SIGHUP:
		h.reload()
	case syscall.SIGUSR1:
		h.shift(-4)
	case syscall.SIGUSR2:
		h.shift(4)
	default:
		if h.ending {
			h.log.Warn("second signal: ending at once", "signal", sig.String())
			os.Exit(128 + int(sig.(syscall.Signal)))
		}
		h.ending = true
		h.log.Info("ending", "signal", sig.String())
		h.stop()
	}
}

// shift moves the log level by a step, within debug and error.
func (h *signalHandler) shift(by slog.Level) {
	l := min(max(h.level.Level()+by, slog.LevelDebug), slog.LevelError)
	h.log.Info("log level changes", "level", l.String())
	h.level.Set(l)
}

func (h *signalHandler) reload() {
	c, err := h.flags.load()
	if err != nil {
		h.log.Error("configuration not taken, the one before stays", "err", err)
		return
	}
	h.server.Reload(c)
	h.log.Info("configuration read again: limits, white list and thresholds are taken over; ports, directories and tickTime need a restart")
}
