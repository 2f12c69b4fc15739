package peer

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// dialled is a connection that was made by dialling.
type dialled struct {
	net.Conn
	address string        // the dialled address
	took    time.Duration // a round trip, unless the machine was busy
}

// dialError says why none of the addresses of a server could be connected.
type dialError []error

func (e dialError) Error() string { return errors.Join(e...).Error() }

// Unwrap returns the errors, for errors.Is.
func (e dialError) Unwrap() []error { return e }

// errNoAddress says that no address of a server is known.
var errNoAddress = errors.New("no address is known")

// dialAny dials all addresses at once and returns the first that connects. It resolves
// names each time.
func (o *Options) dialAny(ctx context.Context, addresses []string) (*dialled, error) {
	if len(addresses) == 0 {
		return nil, dialError{errNoAddress}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		d   *dialled
		err error
	}
	results := make(chan result, len(addresses)) // each dial sends once
	for _, address := range addresses {
		go func() {
			began := time.Now()
			c, err := o.Dial(ctx, address)
			results <- result{&dialled{c, address, time.Since(began)}, err}
		}()
	}
	var first *dialled
	var failed dialError
	for range addresses {
		switch r := <-results; {
		case r.err != nil:
			failed = append(failed, r.err)
		case first != nil:
			r.d.Close()
		default:
			first = r.d
			cancel()
		}
	}
	if first == nil {
		return nil, failed
	}
	return first, nil
}

// refused reports whether every address of a server has refused: no process listens.
func refused(err error) bool {
	var all dialError
	if !errors.As(err, &all) {
		return false
	}
	for _, err := range all {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return false
		}
	}
	return true
}

// timedOut reports whether any part of err is a timeout or was cancelled by this server.
// Such an error says nothing about the other server.
func timedOut(err error) bool {
	var all dialError
	if !errors.As(err, &all) {
		all = dialError{err}
	}
	for _, err := range all {
		var ne net.Error
		if errors.Is(err, context.Canceled) || errors.As(err, &ne) && ne.Timeout() {
			return true
		}
	}
	return false
}

// pause waits; it returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
