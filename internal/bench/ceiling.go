package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"bellwether/wire"
)

// Ceiling measures what this machine allows: requests to a server that only echoes, with the
// frames of getData and setData; appends to a file with an fsync after each, with the
// bytes of setData's transactions; and for how long the machine stops while it is busy.
type Ceiling struct {
	// Echo returns the command of a process that calls [Echo] with these lengths, its standard
	// output and its standard input.
	Echo        func(request, reply int) *exec.Cmd
	Connections int
	Outstanding int // requests in flight per connection
	Size        int // bytes of data per request
	Batch       int // transactions before each fsync, in a second measurement of the file
	Dir         string
	Warmup      time.Duration
	Duration    time.Duration
}

// Check returns an error if a field is out of range.
func (c Ceiling) Check() error {
	return firstOf(between("connections", c.Connections, 1, connectionsMax), between("outstanding", c.Outstanding, 1, connectionsMax),
		between("size", c.Size, 0, sizeMax), between("batch", c.Batch, 1, connectionsMax), c.setting().check(), checkFiles(c.Connections))
}

func (c Ceiling) setting() Setting { return Setting{Warmup: c.Warmup, Duration: c.Duration} }

// Run measures reads, writes, appends one by one, appends in batches, and pauses. The latency of a
// batch is that of each of its transactions, that of a pause is how long it lasts.
func (c Ceiling) Run(ctx context.Context) (all []*Report, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	for _, f := range []frames{readFrames(c.Size), writeFrames(c.Size)} {
		r, err := c.echo(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for _, batch := range []int{1, c.Batch} {
		r, err := c.append(ctx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	r, err := c.pauses(ctx)
	if err != nil {
		return nil, err
	}
	return append(all, r), nil
}

// frames are a request and its reply as they are on the wire.
type frames struct {
	kind           string
	request, reply []byte
}

// ceilingPath is as long as the path of a key of a load.
const ceilingPath = "/bellwether-bench-0123456789abcdef/123/4567"

func frame(records ...wire.Record) []byte { return wire.AppendFrame(nil, records...) }

func readFrames(size int) frames {
	return frames{"ceiling: getData",
		frame(&wire.RequestHeader{Op: wire.OpGetData}, &wire.PathWatchRequest{Path: ceilingPath}),
		frame(&wire.ReplyHeader{}, &wire.DataResponse{Data: make([]byte, size)})}
}

func writeFrames(size int) frames {
	return frames{"ceiling: setData",
		frame(&wire.RequestHeader{Op: wire.OpSetData}, &wire.SetDataRequest{Path: ceilingPath, Data: make([]byte, size)}),
		frame(&wire.ReplyHeader{}, &wire.StatResponse{})}
}

// echo measures one kind of request against a process that echoes.
func (c Ceiling) echo(ctx context.Context, f frames) (*Report, error) {
	cmd := c.Echo(len(f.request), len(f.reply))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer cmd.Wait()
	defer in.Close()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the echo server did not start: %w", err)
	}
	setting := c.setting()
	setting.Servers = []int{cmd.Process.Pid}
	conns, err := dialAll(ctx, strings.TrimSpace(address), c.Connections)
	defer closeConns(conns)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { closeConns(conns) })
	defer stop()
	if c.Warmup > 0 {
		if _, err := c.exchange(conns, f, c.Warmup); err != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
	m := setting.begin()
	took, err := c.exchange(conns, f, c.Duration)
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return m.report(f.kind, took), nil
}

func dialAll(ctx context.Context, address string, n int) ([]net.Conn, error) {
	conns := make([]net.Conn, n)
	err := inFlight(n, dialWidth, func(i int) (err error) {
		conns[i], err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return err
	})
	return conns, err
}

func closeConns(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// exchange keeps requests in flight on every connection.
func (c Ceiling) exchange(conns []net.Conn, f frames, d time.Duration) (*latencies, error) {
	end := time.Now().Add(d)
	books := make([]*book, len(conns))
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	shared := make([]*book, min(len(conns), booksMax))
	for i := range shared {
		shared[i] = newBook(0)
	}
	for i, conn := range conns {
		books[i] = shared[i%len(shared)]
		wg.Go(func() { errs[i] = pipeline(conn, f, c.Outstanding, end, books[i].whole) })
	}
	wg.Wait()
	return mergeBooks(shared).whole, firstOf(errs...)
}

// pipeline sends requests with at most width in flight until the end, and reads all replies.
// It reads all replies that have arrived before it writes the next requests, all at once.
func pipeline(conn net.Conn, f frames, width int, end time.Time, took *latencies) error {
	replies := bufio.NewReaderSize(conn, ioSize)
	sent := make([]time.Time, 0, width) // of the requests in flight, in order
	batch := make([]byte, 0, width*len(f.request))
	reply := make([]byte, len(f.reply))
	for {
		batch = batch[:0]
		now := time.Now()
		for now.Before(end) && len(sent) < width {
			sent = append(sent, now)
			batch = append(batch, f.request...)
		}
		if len(sent) == 0 {
			return nil
		}
		if _, err := conn.Write(batch); err != nil {
			return err
		}
		for first := true; len(sent) > 0 && (first || replies.Buffered() >= len(f.reply)); first = false {
			if _, err := io.ReadFull(replies, reply); err != nil {
				return err
			}
			took.record(time.Since(sent[0]))
			sent = sent[:copy(sent, sent[1:])]
		}
	}
}

// ioSize is the size of a buffer for the bytes of one connection.
const ioSize = 64 << 10

// FrameMax is the largest request or reply of [Echo] in bytes.
const FrameMax = 2 * sizeMax

// Echo listens at a port of 127.0.0.1, prints its address, and answers every request of a fixed
// length with a reply of a fixed length, until in ends. It has one goroutine per connection.
func Echo(request, reply int, out io.Writer, in io.Reader) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		ln.Close()
	}()
	if _, err := fmt.Fprintln(out, ln.Addr()); err != nil {
		return err
	}
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go answer(conn, request, reply)
	}
}

// answer answers the requests of one connection. Replies to requests that have arrived
// together are sent together.
func answer(conn net.Conn, request, reply int) {
	defer conn.Close()
	requests, replies := bufio.NewReaderSize(conn, ioSize), bufio.NewWriterSize(conn, ioSize)
	q, r := make([]byte, request), make([]byte, reply)
	for {
		if _, err := io.ReadFull(requests, q); err != nil {
			return
		}
		if _, err := replies.Write(r); err != nil {
			return
		}
		if requests.Buffered() < request {
			if err := replies.Flush(); err != nil {
				return
			}
		}
	}
}

// txnOverhead is how many bytes a transaction of setData takes in a log besides path and
// data: checksum and length (12), header (36), lengths of path and data (8), version (4), and the
// byte at the end (1).
const txnOverhead = 61

// append measures a loop that appends a batch of transactions to a file and fsyncs it.
func (c Ceiling) append(ctx context.Context, batch int) (*Report, error) {
	log, err := c.newLog(batch)
	if err != nil {
		return nil, err
	}
	defer log.remove()
	if err := log.append(ctx, c.Warmup, newLatencies()); err != nil {
		return nil, err
	}
	m, took := c.setting().begin(), newLatencies()
	if err := log.append(ctx, c.Duration, took); err != nil {
		return nil, err
	}
	r := m.report("ceiling: append and fsync", took)
	r.Figures = []Figure{{"transactions in a batch", float64(batch)}, {"bytes in a batch", float64(len(log.txns))}}
	return r, nil
}

// ceilingLog is a file to which batches of transactions are appended.
type ceilingLog struct {
	file  *os.File
	batch int
	txns  []byte // one batch
}

func (c Ceiling) newLog(batch int) (*ceilingLog, error) {
	file, err := os.CreateTemp(c.Dir, "bellwether-bench-")
	if err != nil {
		return nil, err
	}
	return &ceilingLog{file, batch, make([]byte, batch*(txnOverhead+len(ceilingPath)+c.Size))}, nil
}

func (l *ceilingLog) remove() {
	l.file.Close()
	os.Remove(l.file.Name())
}

// append appends batches for a time, with an fsync after each, and records how long each takes.
func (l *ceilingLog) append(ctx context.Context, d time.Duration, took *latencies) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		begin := time.Now()
		if _, err := l.file.Write(l.txns); err != nil {
			return err
		}
		if err := l.file.Sync(); err != nil {
			return err
		}
		took.recordEach(time.Since(begin), l.batch)
	}
	return ctx.Err()
}
