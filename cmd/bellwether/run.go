package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/admin/web"
	"bellwether/internal/config"
	"bellwether/internal/server"
	"bellwether/internal/shell"
)

// serve runs the server until a signal or a failure.
func (f serveFlags) serve(ctx context.Context, c *config.Config, log *slog.Logger, level *slog.LevelVar, out *logOutput) error {
	begin := time.Now()
	signals := make(chan os.Signal, 8) // room for the signals that arrive while one is handled
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	logRemarks(log, c)
	tuneMemory()
	warnDescriptors(log, c)
	words := admin.New(zookeeperVersion())
	s, err := server.New(server.Options{Config: c, Log: log, FourLetterWords: words.Word})
	if err != nil {
		return failed(log, err)
	}
	scraped, err := openMetrics(c, s, log)
	if err != nil {
		return failed(log, errors.Join(err, s.Close()))
	}
	defer runPort(scraped, log, "no metrics are served any more")()
	port, err := openAdmin(s, words, log)
	if err != nil {
		log.Error(err.Error())
		if err := s.Close(); err != nil {
			log.Error(err.Error())
		}
		return adminStatus(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.whileStdin {
		go endWithStdin(cancel)
	}
	h := signalHandler{flags: f, server: s, admin: port, log: log, level: level, out: out, stop: cancel}
	ended, handled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(handled)
		h.run(signals, ended, func() {
			log.Info("serving", append(append(ports(s), "data", c.DataDir, "version", zookeeperVersion(), "after", time.Since(begin)), page(port)...)...)
		})
	}()
	// The admin port ends after the server, so that health checks can say that it is stopping.
	endAdmin := runPort(port, log, "the admin server has ended")
	err = s.Run(ctx)
	endAdmin()
	close(ended)
	<-handled
	if err != nil {
		return failed(log, err)
	}
	log.Info("ended")
	return nil
}

// ports returns the client ports of a server for the log: address, and secure for the port with TLS.
func ports(s *server.Server) []any {
	var list []any
	if at := s.Addr(); at != nil || s.SecureAddr() == nil {
		list = append(list, "address", fmt.Sprint(at))
	}
	if at := s.SecureAddr(); at != nil {
		list = append(list, "secure", at.String())
	}
	return list
}

// page returns the address of the page for the log.
func page(port *web.Port) []any {
	if port == nil {
		return nil
	}
	return []any{"admin", port.URL()}
}

// failed logs why the server ended and returns the exit status.
func failed(log *slog.Logger, err error) error {
	log.Error(err.Error())
	return &shell.StatusError{Status: shell.ExitFailed}
}

// signalHandler does what the signals of a running server request.
type signalHandler struct {
	flags  serveFlags
	server *server.Server
	admin  *web.Port // nil: there is none
	log    *slog.Logger
	level  *slog.LevelVar
	out    *logOutput
	stop   func()
	ending bool
}

// run handles signals until the server has ended. It calls serving when the server is ready.
func (h *signalHandler) run(signals <-chan os.Signal, ended <-chan struct{}, serving func()) {
	ready := h.server.Ready()
	for {
		select {
		case <-ready:
			serving()
			ready = nil
		case sig := <-signals:
			h.handle(sig)
		case <-ended:
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
			h.out.close()
			os.Exit(128 + int(sig.(syscall.Signal)))
		}
		h.ending = true
		h.log.Info("ending", "signal", sig.String())
		h.stop()
	}
}

// shift raises or lowers the log level by one step, between debug and error. It always logs the new level.
func (h *signalHandler) shift(by slog.Level) {
	l := min(max(h.level.Level()+by, slog.LevelDebug), slog.LevelError)
	h.level.Set(l)
	h.log.Log(context.Background(), l, "log level is now "+l.String())
}

// reload reads the configuration again. If it has an error, nothing changes.
func (h *signalHandler) reload() {
	c, err := h.flags.load()
	if err != nil {
		h.log.Error("the configuration is refused, and the previous one stays in effect: " + err.Error())
		return
	}
	logRemarks(h.log, c)
	changes := h.server.Reload(c)
	if h.admin != nil {
		h.admin.Reload()
	}
	level := slog.LevelInfo
	if len(changes.Restart) > 0 || len(changes.Refused) > 0 {
		level = slog.LevelWarn
	}
	h.log.Log(context.Background(), level, "configuration read again: "+changes.String())
}
