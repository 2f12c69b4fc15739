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

// TestOnlyTLSEndsAtOnce shows that a server does not wait for more after the first bytes that are not TLS, and
// how it explains them, and that a client with TLS is served.
func TestOnlyTLSEndsAtOnce(t *testing.T) {
	ca := authority(t, "ca")
	s := openStore(t, Servers, ca.issue(t, "server", hosts("127.0.0.1", "localhost")), ca, "clientAuth", "none", "clientHostnameVerification", "false")
	config := serverOf(t, s)
	for text, want := range map[string]string{
		"s":                                "it does not speak TLS: let it use TLS, or the port without TLS",
		"srvr":                             "it does not speak TLS: let it use TLS, or the port without TLS",
		"\x00\x00\x00\x2d\x00\x00\x00\x00": "it does not speak TLS: let it use TLS, or the port without TLS",
		"GET / HTTP/1.1\r\n\r\n":           "it speaks HTTP without TLS: let it use TLS, or the port without TLS",
	} {
		synctest.Test(t, func(t *testing.T) { // if the server waited, the test would end in a deadlock
			near, far := net.Pipe()
			defer near.Close()
			go near.Write([]byte(text))
			wants(t, text, Explain(tls.Server(OnlyTLS(far), config).Handshake(), ""), want)
			far.Close()
		})
	}
	near, far := net.Pipe()
	go func() {
		c := tls.Client(near, s.Client(t.Context(), "localhost", loopback))
		_, _ = c.Write([]byte("ruok"))
		near.Close()
	}()
	if b, err := io.ReadAll(tls.Server(OnlyTLS(far), config)); string(b) != "ruok" {
		t.Errorf("%q, %v", b, err)
	}
}
