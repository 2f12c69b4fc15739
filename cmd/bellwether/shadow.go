package main

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/spf13/cobra"

	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/internal/shell"
)

const shadowLong = `Forward clients to the servers of a ZooKeeper ensemble, and compare each reply with what a Bellwether
observer of the ensemble answers. So you see before a migration whether Bellwether would have answered differently.

Start a Bellwether server as an observer of the ensemble, and let clients connect to --listen. Their bytes are forwarded
unchanged. Reads are repeated at the observer, with the client's auth packets. Writes are never repeated: shadow reads
the written znode at the observer, and compares it with what the reply to the write says. Comparing never delays a
client: if it falls behind, replies are counted as dropped. The log warns if --observer is not a Bellwether observer.

shadow prints each difference when it finds it, and a report at the end, after SIGUSR1, and with --interval. SIGTERM and
SIGINT end it. The report counts what could not be compared, with the reasons, and lists what is never compared.

A client that sets watches gets a session of its own at the observer, which sets the same watches. The events are compared.

With --listen-tls the clients use TLS. The file has the ssl. keys of a zoo.cfg. With --old-tls and --observer-tls shadow
connects with TLS. These files have ZooKeeper's client properties zookeeper.ssl.*; give one for each client certificate, and
one without a certificate for clients that show none. A client with another certificate is refused, so nobody acts as
somebody else. Without --listen-tls, all clients act with the first file of --old-tls.

A login by SASL is forwarded, but cannot be repeated at the observer. What everybody may read is compared. For the rest,
and for what a client may write but not read, name a file with super:password of the observer's super user with
--observer-super-file: shadow only reads with it. Whether the client may read is then not compared.

Exit status: 0 no difference, 1 a difference, 2 usage, 4 no connection to an old server or the observer at the start.`

// shadowFlags are the flags of shadow.
type shadowFlags struct {
	outputFlag
	listen, old, observer string
	tls                   shadowTLS
	interval              time.Duration
}

func newShadow() *cobra.Command {
	var f shadowFlags
	c := &cobra.Command{
		Use:     "shadow",
		Short:   "compare the replies of a ZooKeeper ensemble with those of a Bellwether observer",
		Long:    shadowLong,
		Example: "  bellwether shadow --listen :2181 --old zk1:2181,zk2:2181 --observer new1:2181 --interval 10m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.old == "" || f.observer == "" {
				return shell.Usage(errors.New("name the old servers with --old and the observer with --observer"))
			}
			if f.interval < 0 {
				return shell.Usage(fmt.Errorf("--interval %v: want 0 or more", f.interval))
			}
			return f.run(cmd.Context(), &shadowPrinter{w: cmd.OutOrStdout(), json: f.json()}, cmd.ErrOrStderr())
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:2181", "address for the clients")
	c.Flags().StringVar(&f.old, "old", "", "client addresses of the old servers, separated by commas; connections are spread over them")
	c.Flags().StringVar(&f.observer, "observer", "", "client address of the Bellwether observer")
	c.Flags().StringVar(&f.tls.listen, "listen-tls", "", "`FILE` with the ssl. keys of a zoo.cfg: clients connect with TLS")
	c.Flags().StringArrayVar(&f.tls.old, "old-tls", nil, "`FILE` with client properties zookeeper.ssl.*: connect to the old servers with TLS; can be repeated")
	c.Flags().StringArrayVar(&f.tls.observer, "observer-tls", nil, "`FILE` like --old-tls, for the observer; can be repeated")
	c.Flags().StringVar(&f.tls.super, "observer-super-file", "", "`FILE` with super:password of the observer's super user")
	c.Flags().DurationVar(&f.interval, "interval", 0, "print a report this often; 0: only at the end and after SIGUSR1")
	return c
}

// run forwards and compares until a signal.
func (f *shadowFlags) run(ctx context.Context, p *shadowPrinter, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log, out := newLog(stderr, func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) })
	defer out.close()
	o := relay.Options{Found: p.found, Logger: log}
	if err := errors.Join(f.servers(&o), f.tls.load(&o)); err != nil {
		return shell.Usage(err)
	}
	listen, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	defer listen.Close()
	o.Listen = listen
	r, err := relay.New(o)
	if err != nil {
		return shell.Usage(err)
	}
	if err := r.Check(ctx); errors.Is(err, relay.ErrOwnAddress) {
		return shell.Usage(err)
	} else if err != nil {
		return &shell.StatusError{Status: shell.ExitNoConnection, Err: err}
	}
	o.Logger.Info("clients are forwarded, and replies compared", "address", listen.Addr().String(), "old", strings.Join(o.Old, ","), "observer", o.Observer)
	var reports sync.WaitGroup
	ended := make(chan struct{})
	reports.Go(func() { f.reports(r, p, ended) })
	err = r.Run(ctx)
	stop() // from now on a second signal ends this process at once
	close(ended)
	reports.Wait()
	report := r.Report()
	err = errors.Join(err, p.report(report, true))
	if n := report.Differing(); err == nil && n > 0 {
		err = &shell.StatusError{Status: shell.ExitFailed}
	}
	return err
}

// servers sets the addresses of the servers.
func (f *shadowFlags) servers(o *relay.Options) (err error) {
	if o.Old, err = hostPorts("--old", f.old); err != nil {
		return err
	}
	o.Observer, err = hostPort("--observer", f.observer)
	return err
}

// reports prints a report after SIGUSR1 and at each interval, until ended is closed.
func (f *shadowFlags) reports(r *relay.Relay, p *shadowPrinter, ended <-chan struct{}) {
	signals := make(chan os.Signal, 1) // one signal that waits stands for all
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	var tick <-chan time.Time
	if f.interval > 0 {
		ticker := time.NewTicker(f.interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ended:
			return
		case <-signals:
		case <-tick:
		}
		p.report(r.Report(), false) // the output remembers a failed write
	}
}

// shadowPrinter prints what shadow finds.
type shadowPrinter struct {
	json bool

	mu sync.Mutex // held while writing, so that lines stay whole
	w  io.Writer
}

// shadowLine is one line of the JSON output. Exactly one of the pointers is set.
type shadowLine struct {
	Difference *shadow.Found  `json:"difference,omitempty"`
	Report     *shadow.Report `json:"report,omitempty"`
	Final      bool           `json:"final,omitempty"` // the last report
}

func (p *shadowPrinter) found(f shadow.Found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json {
		p.line(shadowLine{Difference: &f}) // the output remembers a failed write
		return
	}
	fmt.Fprintln(p.w, f)
}

func (p *shadowPrinter) report(r *shadow.Report, final bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json {
		return p.line(shadowLine{Report: r, Final: final})
	}
	return r.Print(p.w)
}

func (p *shadowPrinter) line(l shadowLine) error {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}
