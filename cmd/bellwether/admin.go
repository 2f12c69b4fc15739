package main

import (
	"context"
	"errors"
	"log/slog"

	"bellwether/internal/admin"
	"bellwether/internal/admin/web"
	"bellwether/internal/server"
	"bellwether/internal/shell"
)

// exitAdmin is ZooKeeper's exit status of a server whose admin port is in use.
const exitAdmin = 4

// openAdmin opens the admin port; nil: the server has none. If the port is in use, a server without --config runs
// without an admin port, because nobody has asked for one. With --config it is as in ZooKeeper: a member of an
// ensemble runs without an admin port, and a standalone server does not start.
func openAdmin(s *server.Server, words *admin.Admin, log *slog.Logger) (*web.Port, error) {
	c := s.Config()
	if !c.Admin.Enabled {
		return nil, nil
	}
	o := web.Options{Server: s, Admin: words, Log: log, Metrics: metricsPage(c, s, log)}
	if err := plugPage(&o, s, log); err != nil {
		return nil, err
	}
	port, err := web.Open(o)
	var used *web.InUseError
	switch {
	case err == nil:
		log.Info(port.String())
		return port, nil
	case !errors.As(err, &used):
		return nil, err
	case c.File == "":
		log.Warn("there is no admin port, because its port is in use; end the other program, or choose another port with admin.serverPort in a zoo.cfg", "err", err)
		return nil, nil
	case !c.Standalone():
		log.Error("Problem starting AdminServer; the server runs without it: end the program that uses the port, or choose another one with admin.serverPort", "err", err)
		return nil, nil
	}
	return nil, &inUse{err}
}

// inUse is the error of a standalone server with --config whose admin port is in use.
type inUse struct{ error }

func (e *inUse) Error() string {
	return "Unable to start AdminServer, exiting abnormally: " + e.error.Error() +
		": end the program that uses the port, or set admin.serverPort or admin.enableServer=false"
}

// startStatus returns the exit status of a start that has failed.
func startStatus(err error) error {
	if used := (*inUse)(nil); errors.As(err, &used) {
		return &shell.StatusError{Status: exitAdmin}
	}
	return &shell.StatusError{Status: shell.ExitFailed}
}

// httpPort is an open port for HTTP.
type httpPort interface {
	comparable
	Run(ctx context.Context) error
}

// runPort answers the requests to a port until the caller calls end, which returns when the port has ended. It logs
// the text ended if the port ends by itself. If port is nil, it does nothing.
func runPort[P httpPort](port P, log *slog.Logger, ended string) (end func()) {
	var none P
	if port == none {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := port.Run(ctx); err != nil {
			log.Error(ended, "err", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
