package shell

import (
	"testing"
	"time"
)

// TestCertificatesOfServers shows what status says about the certificates of servers, and from when on it warns.
func TestCertificatesOfServers(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		left time.Duration
		want string
	}{
		{31 * day, ""},
		{30 * day, "warning: the certificate of a:1 for clients expires in 30 days: renew it\n"},
		{7 * day, "warning: the certificate of a:1 for clients expires in 7 days: renew it this week\n"},
		{23 * time.Hour, "warning: the certificate of a:1 for clients expires in 23 hours: renew it now\n"},
		{0, "warning: the certificate of a:1 for clients has expired: renew it now\n"},
	} {
		at := now.Add(c.left)
		want := "a:1 has a certificate for clients until " + at.Format(time.DateOnly) + "\n" + c.want
		if got := certificates([]serverStatus{{Server: "a:1", ClientCertificate: &at}, {Server: "b:1"}}, now); got != want {
			t.Errorf("%v: %q, want %q", c.left, got, want)
		}
	}
	s := parseSrvr(srvrOf("leader", "Certificate for clients expires: 2027-01-02T03:04:05Z\nCertificate between servers expires: 2027-02-02T03:04:05Z\n"))
	s.Server = "a:1"
	if got := certificates([]serverStatus{s}, now); got != "a:1 has a certificate for clients until 2027-01-02, and between servers until 2027-02-02\n" {
		t.Errorf("%q", got)
	}
	if s := parseSrvr("Certificate for clients expires: soon\n"); s.ClientCertificate != nil {
		t.Error(s.ClientCertificate)
	}
}
