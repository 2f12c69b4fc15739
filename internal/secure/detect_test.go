package secure

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestDetect shows how one port takes connections with and without TLS, and that no byte
// is lost.
func TestDetect(t *testing.T) {
	ca := authority(t, "ca")
	s := openStore(t, Servers, ca.issue(t, "server", hosts("127.0.0.1", "localhost")), ca, "clientAuth", "none", "clientHostnameVerification", "false")
	config := serverOf(t, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, secured := range []bool{true, false} {
		done := make(chan bool)
		go func() {
			defer close(done)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			if secured {
				c = tls.Client(c, s.Client(t.Context(), "localhost", loopback))
			}
			defer c.Close()
			if _, err := c.Write([]byte("ruok")); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, c)
		}()
		raw, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c, isTLS, err := Detect(raw, time.Minute)
		if err != nil || isTLS != secured {
			t.Fatal(isTLS, err)
		}
		if isTLS {
			c = tls.Server(c, config)
		}
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "ruok" {
			t.Errorf("TLS %t: %q, %v", secured, b, err)
		}
		c.Close()
		<-done
	}
}

// TestDetectSilence shows that an end that sends nothing counts as one without TLS after the timeout, and
// that an end that closes the connection causes an error.
func TestDetectSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		began := time.Now()
		c, isTLS, err := Detect(a, 5*time.Second)
		if err != nil || isTLS || time.Since(began) != 5*time.Second {
			t.Fatalf("TLS %t, %v after %s", isTLS, err, time.Since(began))
		}
		go func() {
			time.Sleep(time.Hour) // no deadline is left on the connection
			_, _ = b.Write([]byte("x"))
			b.Close()
		}()
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if _, _, err := Detect(c, time.Second); err != io.EOF {
			t.Error(err)
		}
	})
}
