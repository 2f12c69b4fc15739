// Command bellwether-otel asks servers for their traced requests, by the four-letter word trac,
// and sends them to an OpenTelemetry collector by OTLP over HTTP. The variables
// OTEL_EXPORTER_OTLP_* say where the collector is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"bellwether/otel"
)

const (
	askMax    = 10 * time.Second // how long a server may take to answer
	answerMax = 256 << 20        // the longest answer that is read, in bytes
)

func main() {
	servers := flag.String("server", "127.0.0.1:2181", "client addresses of the servers, without TLS, separated by commas")
	every := flag.Duration("every", 5*time.Second, "time between two requests to a server for its traces")
	once := flag.Bool("once", false, "ask each server once, and end")
	flag.Parse()
	if flag.NArg() > 0 || *every <= 0 {
		fmt.Fprintln(os.Stderr, "usage: bellwether-otel [--server HOST:PORT,...] [--every 5s] [--once]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, strings.Split(*servers, ","), *every, *once); err != nil {
		fmt.Fprintln(os.Stderr, "bellwether-otel:", err)
		os.Exit(1)
	}
}

// run exports the traces of the servers until ctx ends.
func run(ctx context.Context, servers []string, every time.Duration, once bool) error {
	out, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	var lost error // the last reason for which the collector did not get spans
	var mu sync.Mutex
	api.SetErrorHandler(api.ErrorHandlerFunc(func(err error) {
		slog.Warn("the collector did not get spans", "err", err)
		mu.Lock()
		defer mu.Unlock()
		lost = err
	}))
	// Blocking: otherwise spans are dropped while the queue is full, and a server sends thousands at once.
	p := sdk.NewTracerProvider(sdk.WithBatcher(out, sdk.WithBlocking()), sdk.WithIDGenerator(otel.IDs()),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "bellwether"))))
	e := otel.NewExporter(p)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, s := range servers {
			if err := export(ctx, e, s); err != nil && once {
				return errors.Join(fmt.Errorf("no traces of %s: %w", s, err), p.Shutdown(ctx))
			} else if err != nil {
				slog.Warn("no traces of "+s, "err", err)
			}
		}
		if once {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), askMax)
	defer cancel()
	err = p.Shutdown(last)
	mu.Lock()
	defer mu.Unlock()
	if once {
		err = errors.Join(err, lost)
	}
	return err
}

// export exports the new traces of one server.
func export(ctx context.Context, e *otel.Exporter, server string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askMax)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "trac"); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(conn, answerMax))
	if err != nil {
		return err
	}
	all, err := otel.Decode(text)
	if err != nil {
		return err
	}
	e.Export(ctx, server, all)
	return nil
}
