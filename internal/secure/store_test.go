package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// shownBy returns the serial number of the certificate that a store shows.
func shownBy(s *Store) string {
	return s.loaded.Load().certificates[0].Leaf.SerialNumber.String()
}

// TestReload shows that renewed files are used, that unusable files are not, and that each failure is
// reported once.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	ca := authority(t, "ca")
	first, second := ca.issue(t, "first", hosts("127.0.0.1")), ca.issue(t, "second", hosts("127.0.0.1"))
	settings := settingsFor(t, Servers, dir, first, ca)
	key := settings.KeyStore.Location
	s, err := openAt(settings, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	step := func(what string, changed bool, want string, shown *signed) {
		t.Helper()
		got, err := s.Reload()
		wants(t, what, err, want)
		if got != changed || shownBy(s) != shown.cert.SerialNumber.String() {
			t.Errorf("%s: changed %t, and certificate %s is shown", what, got, shownBy(s))
		}
	}
	step("the same files", false, "", first)
	write(t, key, second.pem(t, true))
	step("renewed", true, "", second)
	whole := first.pem(t, true)
	write(t, key, whole[:len(whole)-100])
	step("half", false, "ssl.quorum.keyStore.location: "+key+": the file ends in the middle of a PEM block: copy the whole file again", second)
	step("half, again", false, "", second)
	_, err = s.ReloadNow()
	wants(t, "an operator asks again", err, "ends in the middle of a PEM block")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	step("gone", false, "no such file or directory", second)
	step("gone, again", false, "", second)
	write(t, key, second.pem(t, true))
	step("as before", true, "", second)
	step("as before, again", false, "", second)
	write(t, settings.TrustStore.Location, nil)
	step("empty trust store", false, "ssl.quorum.trustStore.location: "+settings.TrustStore.Location+": the file is empty", second)
	write(t, settings.TrustStore.Location, ca.pem(t, false))
	write(t, key, first.pem(t, true))
	step("the first one", true, "", first)
}

// TestReloadKeepsConnections shows that a connection lives on after a reload, and that the
// next one sees the new certificate.
func TestReloadKeepsConnections(t *testing.T) {
	dir := t.TempDir()
	ca := authority(t, "ca")
	first, second := ca.issue(t, "first", hosts("127.0.0.1")), ca.issue(t, "second", hosts("127.0.0.1"))
	settings := settingsFor(t, Servers, dir, first, ca)
	s, err := openAt(settings, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	echo := func(c net.Conn) {
		t.Helper()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	dial := func(want *signed) *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", l.Addr().String(), s.Client(t.Context(), "", loopback))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		echo(c)
		if got := c.ConnectionState().PeerCertificates[0]; !got.Equal(want.cert) {
			t.Fatalf("the server shows %q", NameOf(got))
		}
		return c
	}
	before := dial(first)
	write(t, settings.KeyStore.Location, second.pem(t, true))
	if changed, err := s.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	dial(second)
	echo(before)
}

// TestWatch shows when the files are read again. The test controls the time.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ca := authority(t, "ca")
		first, second := ca.issue(t, "first", nil), ca.issue(t, "second", nil)
		settings := settingsFor(t, Servers, dir, first, ca)
		s, err := openAt(settings, atNoon)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var told []error
		ctx, stop := context.WithCancel(t.Context())
		events, errs, done := make(chan fsnotify.Event), make(chan error), make(chan bool)
		go func() {
			s.watch(ctx, events, errs, func() {}, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err)
			})
			close(done)
		}()
		expect := func(what string, after time.Duration, n int, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(told) != n {
				t.Fatalf("%s: told %d times, want %d: %v", what, len(told), n, told)
			}
			if n > 0 {
				wants(t, what, told[n-1], want)
			}
		}
		expect("at the beginning", 0, 0, "")
		write(t, settings.KeyStore.Location, second.pem(t, true))
		events <- fsnotify.Event{}
		expect("before the files have settled", settle-1, 0, "")
		events <- fsnotify.Event{}
		expect("another event", settle-1, 0, "")
		expect("settled", 1, 1, "")
		write(t, settings.KeyStore.Location, []byte("-----BEGIN CERT"))
		errs <- errors.New("events are lost")
		expect("half", settle, 2, "the file ends in the middle of a PEM block")
		expect("half for an hour", time.Hour, 2, "ends in the middle of a PEM block")
		write(t, settings.KeyStore.Location, first.pem(t, true))
		expect("without an event", pollInterval, 3, "")
		write(t, settings.KeyStore.Location, second.pem(t, true))
		for range int(settleMax/settle) * 2 {
			events <- fsnotify.Event{}
			time.Sleep(settle / 2)
		}
		expect("events without end", 0, 4, "")
		close(events)
		close(errs)
		expect("the watcher ended", pollInterval, 4, "")
		stop()
		<-done
	})
}

// TestWatchSeesFiles shows that a change is noticed both if a file is replaced, and if a link to its
// folder is changed, as Kubernetes does with secrets.
func TestWatchSeesFiles(t *testing.T) {
	ca := authority(t, "ca")
	first, second, third := ca.issue(t, "first", nil), ca.issue(t, "second", nil), ca.issue(t, "third", nil)
	wait := func(s *Store, want *signed, changes ...func()) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		told, done := make(chan error, 10), make(chan bool)
		// Watch reads the files after it has begun to watch them, so no change is missed.
		go func() {
			s.Watch(ctx, func(err error) { told <- err })
			close(done)
		}()
		for i, change := range changes {
			change()
			select {
			case err := <-told:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("change %d was not noticed", i+1)
			}
		}
		if shownBy(s) != want.cert.SerialNumber.String() {
			t.Error("the old certificate is shown")
		}
		stop()
		<-done
	}

	settings := settingsFor(t, Servers, t.TempDir(), first, ca)
	s, err := openAt(settings, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	wait(s, second, func() { write(t, settings.KeyStore.Location, second.pem(t, true)) })

	// dir/key.pem links to current/key.pem, and current links first to one, then to two.
	dir := t.TempDir()
	for name, c := range map[string]*signed{"one": first, "two": second} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "key.pem"), c.pem(t, true))
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name+".new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("one", "current")
	link("current/key.pem", "key.pem")
	settings.KeyStore.Location = filepath.Join(dir, "key.pem")
	if s, err = openAt(settings, atNoon); err != nil {
		t.Fatal(err)
	}
	// The folder to which the link leads then is watched too.
	wait(s, third, func() { link("two", "current") }, func() { write(t, filepath.Join(dir, "two", "key.pem"), third.pem(t, true)) })
}

// TestCertificates shows what is reported about the certificates in use.
func TestCertificates(t *testing.T) {
	ca := authority(t, "ca")
	s := openStore(t, Clients, ca.issue(t, "server", nil), ca)
	all := s.Certificates()
	if len(all) != 2 || all[0].Subject != "CN=server" || !all[0].Ours || all[1].Subject != "CN=ca" || all[1].Ours || !all[0].NotAfter.Equal(noon.AddDate(0, 2, 0)) {
		t.Errorf("%+v", all)
	}
}

// TestValidCertificateIsPreferred shows that an expired certificate of a store is not shown to others
// while the store has a valid one.
func TestValidCertificateIsPreferred(t *testing.T) {
	b, err := recorded("several.p12").read()
	if err != nil {
		t.Fatal(err)
	}
	c, err := recorded("several.p12").load(b, true)
	if err != nil || len(c.keys) != 2 {
		t.Fatal(len(c.keys), err)
	}
	ca := authority(t, "ca")
	old := ca.issue(t, "old", func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Second) })
	l := &loaded{certificates: []tls.Certificate{{Leaf: old.cert}, {Leaf: ca.cert}}}
	if l.preferValid(noon); l.certificates[0].Leaf != ca.cert {
		t.Error("the expired certificate comes first")
	}
}

// TestExpiry shows when a warning is given, and its text.
func TestExpiry(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		left time.Duration
		days int
		want string
	}{
		{31 * day, -1, ""},
		{30 * day, 30, "in 30 days: renew it"},
		{8 * day, 30, "in 8 days"},
		{7 * day, 7, "in 7 days"},
		{36 * time.Hour, 7, "in 36 hours"},
		{day, 1, "in 24 hours"},
		{time.Minute, 1, "in 0 hours"},
		{0, 0, `the certificate "CN=x" of key.pem expired at 2026-06-01T12:00:00Z: renew it`},
		{-day, 0, "expired at"},
	} {
		days, text := Certificate{File: "key.pem", Subject: "CN=x", Ours: true, NotAfter: noon.Add(c.left)}.Expiry(noon)
		if days != c.days || !strings.Contains(text, c.want) || (text == "") != (c.want == "") {
			t.Errorf("%s before: %d, %q", c.left, days, text)
		}
	}
}
