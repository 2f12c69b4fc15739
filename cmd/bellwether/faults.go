package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"bellwether/embed"
	"bellwether/internal/shell"
)

// faultsAnyPort is the value of --faults when the flag has no address: any free loopback port.
const faultsAnyPort = "127.0.0.1:0"

// ensembleWithFaults runs the servers of an ensemble inside this process until a signal. It offers faults on demand over
// HTTP.
func (f serveFlags) ensembleWithFaults(ctx context.Context, stdout, stderr io.Writer) error {
	host, port, err := f.checkEnsemble()
	if err == nil {
		err = checkLoopback(f.faults)
	}
	if err != nil {
		return shell.Usage(err)
	}
	handler, _, err := f.logHandler()
	if err != nil {
		return shell.Usage(err)
	}
	log, out := newLog(stderr, handler)
	defer out.close()
	if f.memory {
		f.data = ""
	} else {
		folder, err := holdFolder(f.data)
		if err != nil {
			return err
		}
		defer folder.Close()
	}
	control, err := net.Listen("tcp", f.faults)
	if err != nil {
		return err
	}
	defer control.Close()
	tuneMemory()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if f.whileStdin {
		go endWithStdin(stop)
	}
	e, err := embed.Start(ctx, embed.Options{
		Servers: f.servers, Dir: f.data, NoSync: f.noSync, Listen: net.JoinHostPort(host, strconv.Itoa(port)), Logger: log,
	})
	if err != nil {
		return ended(ctx, err)
	}
	fmt.Fprintln(stdout, greeting(e.Len(), e.Servers(), cmp.Or(f.data, "memory")))
	fmt.Fprintf(stdout, "faults at http://%s/\n", control.Addr())
	fmt.Fprintf(stdout, "try: curl -X POST http://%s/servers/1/pause\n", control.Addr())
	err = serveFaults(ctx, control, faultsHandler(e, log))
	stop() // from now on a second signal ends this process at once
	return errors.Join(err, e.Close())
}

// headerTimeout is the time that a caller has to send the header of its request.
const headerTimeout = 10 * time.Second

// serveFaults answers HTTP calls until ctx ends.
func serveFaults(ctx context.Context, ln net.Listener, calls http.Handler) error {
	s := &http.Server{Handler: calls, ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		s.Close()
	})
	err := s.Serve(ln)
	if stop() { // the HTTP server failed by itself
		return err
	}
	<-done
	return nil
}

// checkLoopback returns an error for an address that other machines can reach: they could cause faults.
func checkLoopback(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("--faults=%s: want a loopback address and a port, as in 127.0.0.1:7000", address)
	}
	return nil
}
