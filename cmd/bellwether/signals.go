package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"bellwether/internal/admin/web"
	"bellwether/internal/server"
)

// signalHandler does what signals request, from the start of the program's work to its end. It never waits for a file
// or for the server, so that SIGTERM and SIGINT always have their effect; a reloader carries out SIGHUP.
type signalHandler struct {
	log    *slog.Logger
	level  *slog.LevelVar
	out    *logOutput
	stop   func() // lets the server end
	ending bool   // stop was called

	// SIGTERM and SIGINT have a channel of their own, so that many other signals cannot displace them. It has
	// room for the first one and for the second, which ends the process.
	ends chan os.Signal
	// reloads receives SIGHUP. It has room for one: that one also stands for those that arrive while it waits.
	reloads chan os.Signal
	levels  chan os.Signal // SIGUSR1 and SIGUSR2: room for those that arrive while one is handled

	quit, done chan struct{}
}

// handleSignals starts to handle signals. The caller must call close.
func handleSignals(log *slog.Logger, level *slog.LevelVar, out *logOutput, stop func()) *signalHandler {
	h := &signalHandler{log: log, level: level, out: out, stop: stop,
		ends: make(chan os.Signal, 2), reloads: make(chan os.Signal, 1), levels: make(chan os.Signal, 8),
		quit: make(chan struct{}), done: make(chan struct{})}
	signal.Notify(h.ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(h.reloads, syscall.SIGHUP)
	signal.Notify(h.levels, syscall.SIGUSR1, syscall.SIGUSR2)
	go h.run()
	return h
}

// close gives the signals their default effects again.
func (h *signalHandler) close() {
	for _, c := range []chan os.Signal{h.ends, h.reloads, h.levels} {
		signal.Stop(c)
	}
	close(h.quit)
	<-h.done
}

func (h *signalHandler) run() {
	defer close(h.done)
	for {
		select {
		case sig := <-h.ends:
			h.end(sig)
		case sig := <-h.levels:
			if sig == syscall.SIGUSR1 {
				h.shift(-4)
			} else {
				h.shift(4)
			}
		case <-h.quit:
			return
		}
	}
}

// end lets the server end, or ends the process at the second signal.
func (h *signalHandler) end(sig os.Signal) {
	if h.ending {
		h.log.Warn("second signal: ending at once", "signal", sig.String())
		h.out.close()
		os.Exit(128 + int(sig.(syscall.Signal)))
	}
	h.ending = true
	h.log.Info("ending", "signal", sig.String())
	h.stop()
}

// shift raises or lowers the log level by one step, between debug and error. It always logs the new level.
func (h *signalHandler) shift(by slog.Level) {
	l := min(max(h.level.Level()+by, slog.LevelDebug), slog.LevelError)
	h.level.Set(l)
	h.log.Log(context.Background(), l, "log level is now "+l.String())
}

// reloader reads the configuration of a running server again.
type reloader struct {
	flags  serveFlags
	server *server.Server
	admin  *web.Port // nil: there is none
	log    *slog.Logger
}

// run reads the configuration for each value of reloads until the server has ended. A read may wait for ever for a
// disk that does not answer; run then does not return.
func (r *reloader) run(reloads <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case <-reloads:
			r.reload()
		case <-ended:
			return
		}
	}
}

// reload reads the configuration again. If it has an error, nothing changes.
func (r *reloader) reload() {
	c, err := r.flags.load()
	if err != nil {
		r.log.Error("the configuration is refused, and the previous one stays in effect: " + err.Error())
		return
	}
	logRemarks(r.log, c)
	changes := r.server.Reload(c)
	if r.admin != nil {
		r.admin.Reload()
	}
	level := slog.LevelInfo
	if len(changes.Restart) > 0 || len(changes.Refused) > 0 {
		level = slog.LevelWarn
	}
	r.log.Log(context.Background(), level, "configuration read again: "+changes.String())
}
