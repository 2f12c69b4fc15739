package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/admin/web"
	"bellwether/internal/config"
	"bellwether/internal/scrape"
	"bellwether/internal/server"
	"bellwether/internal/shell"
)

// serve runs the server until a signal or a failure.
func (f serveFlags) serve(ctx context.Context, c *config.Config, log *slog.Logger, level *slog.LevelVar, out *logOutput) error {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := handleSignals(log, level, out, cancel)
	defer signals.close()
	if f.whileStdin {
		go endWithStdin(cancel)
	}
	logRemarks(log, c)
	tuneMemory()
	warnDescriptors(log, c)
	if text := fileSizeWarning(c); text != "" {
		log.Warn(text)
	}
	p, err := openUnless(ctx, c, log)
	switch {
	case errors.Is(err, errWaiting):
		log.Warn(err.Error())
		return nil
	case err != nil:
		log.Error(err.Error())
		return startStatus(err)
	}
	defer runPort(p.metrics, log, "no metrics are served any more")()
	ended := make(chan struct{})
	// No one waits for the end of a reload: if it waits for a file, the process ends without it.
	go (&reloader{flags: f, server: p.server, admin: p.admin, log: log}).run(signals.reloads, ended)
	var ready sync.WaitGroup
	ready.Go(func() {
		select {
		case <-p.server.Ready():
			log.Info("serving", append(append(ports(p.server), "data", c.DataDir, "version", zookeeperVersion(), "after", time.Since(begin)), page(p.admin)...)...)
		case <-ended:
		}
	})
	// The admin port ends after the server, so that health checks can say that it is stopping.
	endAdmin := runPort(p.admin, log, "the admin server has ended")
	err = p.server.Run(ctx)
	endAdmin()
	close(ended)
	ready.Wait()
	if err != nil {
		log.Error(err.Error())
		return &shell.StatusError{Status: shell.ExitFailed}
	}
	log.Info("ended")
	return nil
}

// parts are what a start opens.
type parts struct {
	server  *server.Server
	metrics *scrape.Port // nil: there is none
	admin   *web.Port    // nil: there is none
}

// openParts opens the data directory and all ports.
func openParts(c *config.Config, log *slog.Logger) (*parts, error) {
	words := admin.New(zookeeperVersion())
	s, err := server.New(server.Options{Config: c, Log: log, FourLetterWords: words.Word})
	if err != nil {
		return nil, err
	}
	metrics, err := openMetrics(c, s, log)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	port, err := openAdmin(s, words, log)
	if err != nil {
		if metrics != nil {
			err = errors.Join(err, metrics.Close())
		}
		return nil, errors.Join(err, s.Close())
	}
	return &parts{server: s, metrics: metrics, admin: port}, nil
}

// openEndMax is how long a server that must end waits for openParts.
const openEndMax = 2 * time.Second

// errWaiting: openParts had not returned when the server had to end.
var errWaiting = errors.New("ended during the start, which waits for a file, for the disk, or for another process that uses the data directory")

// openUnless calls openParts. If the server must end meanwhile, it returns early with errWaiting, because a file
// or a disk may never answer. The end of the process closes what is open by then.
func openUnless(ctx context.Context, c *config.Config, log *slog.Logger) (*parts, error) {
	type result struct {
		parts *parts
		err   error
	}
	results := make(chan result, 1)
	go func() {
		p, err := openParts(c, log)
		results <- result{p, err}
	}()
	select {
	case r := <-results:
		return r.parts, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-results:
		return r.parts, r.err
	case <-time.After(openEndMax):
		return nil, errWaiting
	}
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
