package embed

import (
	"errors"
	"io"
	"maps"
	"net"
	"sync"
	"time"
)

// lingerMax is the longest time for which a server that ends waits until the sockets of its clients have taken
// the last bytes.
const lingerMax = time.Second

// acceptPause is the pause after a connection could not be accepted, for example because there are no more file
// descriptors.
const acceptPause = 50 * time.Millisecond

// front is a server's TCP port for clients. It copies each connection to a link of the network inside the
// process, and the faults affect that link.
type front struct {
	ln    net.Listener
	inner *listener
	done  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]*end
}

// open accepts connections on ln until the inner listener is closed.
func (f *front) open() {
	f.conns = map[net.Conn]*end{}
	f.inner.onClose = func() { f.ln.Close() }
	f.done.Go(f.accept)
}

func (f *front) accept() {
	for {
		c, err := f.ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
			continue
		}
		near, err := f.inner.n.connect(f.inner, nil, party{}, c.RemoteAddr())
		if err != nil {
			c.Close()
			continue
		}
		f.carry(c, near)
	}
}

// carry copies both directions of a connection until both have ended.
func (f *front) carry(c net.Conn, near *end) {
	f.mu.Lock()
	f.conns[c] = near
	f.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		io.Copy(near, onlyReader{c})
		near.CloseWrite()
	})
	both.Go(func() {
		_, err := io.Copy(onlyWriter{c}, near)
		switch t, ok := c.(*net.TCPConn); {
		case err == nil && ok:
			t.CloseWrite()
			c.SetReadDeadline(time.Now().Add(2 * lingerMax)) // longer than the server takes to end the connection
		case ok:
			t.SetLinger(0)
			t.Close()
		}
	})
	f.done.Go(func() {
		both.Wait()
		near.Close()
		c.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.conns, c)
	})
}

// close waits until all connections have ended. After lingerMax it ends the remaining ones.
func (f *front) close() {
	f.ln.Close()
	ended := make(chan struct{})
	go func() {
		f.done.Wait()
		close(ended)
	}()
	limit := time.NewTimer(lingerMax)
	defer limit.Stop()
	select {
	case <-ended:
		return
	case <-limit.C:
	}
	f.cut()
	<-ended
}

// cut ends all connections at once.
func (f *front) cut() {
	f.mu.Lock()
	open := maps.Clone(f.conns)
	f.mu.Unlock()
	for c, near := range open {
		near.Close()
		c.Close()
	}
}

// onlyReader and onlyWriter hide all methods but one, so that io.Copy cannot bypass the link and its faults.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }
