package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bellwether/internal/secure"
	"bellwether/internal/shell"
)

// TestTLSCheckTellsWhatExpires shows which dates of certificates and revocation lists are faults and which are
// warnings, and the exit status of each case.
func TestTLSCheckTellsWhatExpires(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, c := range []struct {
		use         string
		from, until time.Duration
		text        string
		status      int
	}{
		{useShown, -day, 31 * day, "", shell.ExitDone},
		{useShown, -day, 29 * day, `warning: the certificate "CN=a" of a.pem expires at 2026-12-22T12:00:00Z, in 29 days: renew it`, exitWarned},
		{useShown, -day, -time.Hour, `fault: the certificate "CN=a" of a.pem expired at 2026-11-23T11:00:00Z: renew it`, shell.ExitFailed},
		{useShown, time.Hour, 31 * day, `fault: the certificate "CN=a" of a.pem is not valid before 2026-11-23T13:00:00Z: compare the clocks`, shell.ExitFailed},
		{useTrusted, -day, -time.Hour, "is trusted, but expired at 2026-11-23T11:00:00Z: what it has issued is refused", exitWarned},
	} {
		r := &tlsReport{warnDays: 30, now: now}
		r.certificate(certReport{File: "a.pem", Use: c.use, Subject: "CN=a", NotAfter: now.Add(c.until)}, now.Add(c.from))
		verify(t, r, c.text, c.status)
	}
	for _, c := range []struct {
		list   secure.List
		text   string
		status int
	}{
		{secure.List{Place: "http://a/", Issuer: "CN=ca", NextUpdate: now.Add(day)}, `revocation list http://a/ of "CN=ca" is valid until 2026-11-24T12:00:00Z`, shell.ExitDone},
		{secure.List{Place: "http://a/", Issuer: "CN=ca"}, `revocation list http://a/ of "CN=ca" is valid without end`, shell.ExitDone},
		{secure.List{Place: "http://a/", Issuer: "CN=ca", NextUpdate: now.Add(-day)}, `fault: the revocation list http://a/ of "CN=ca" ended at 2026-11-22T12:00:00Z`, shell.ExitFailed},
		{secure.List{Place: "http://a/", Err: errors.New("no answer")}, "fault: the revocation list http://a/ cannot be read: no answer", shell.ExitFailed},
	} {
		r := &tlsReport{now: now}
		r.list(c.list)
		verify(t, r, c.text, c.status)
	}
}

// verify compares the output of a report and its exit status.
func verify(t *testing.T, r *tlsReport, text string, status int) {
	t.Helper()
	var b strings.Builder
	if err := r.print(&b, false); err != nil || !strings.Contains(b.String(), text) {
		t.Errorf("%q, want %q: %v", b.String(), text, err)
	}
	got, ended := shell.ExitDone, new(shell.StatusError)
	if errors.As(r.status(), &ended) {
		got = ended.Status
	}
	if got != status {
		t.Errorf("%q: exit status %d, want %d", b.String(), got, status)
	}
}
