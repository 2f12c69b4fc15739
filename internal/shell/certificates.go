package shell

import (
	"fmt"
	"strings"
	"time"
)

// certificateWarnings say how many days before an expiry each warning begins, and how urgent it is.
var certificateWarnings = []struct {
	days int
	text string
}{{1, "renew it now"}, {7, "renew it this week"}, {30, "renew it"}}

// certificates says when the certificates of the servers expire, and warns about those that soon will. It is
// empty if no server uses TLS.
func certificates(all []serverStatus, now time.Time) string {
	var b strings.Builder
	for _, s := range all {
		var parts, warnings []string
		for _, c := range []struct {
			what string
			at   *time.Time
		}{{"for clients", s.ClientCertificate}, {"between servers", s.QuorumCertificate}} {
			if c.at == nil {
				continue
			}
			parts = append(parts, c.what+" until "+c.at.Format(time.DateOnly))
			if text := certificateWarning(c.at.Sub(now)); text != "" {
				warnings = append(warnings, fmt.Sprintf("warning: the certificate of %s %s %s\n", s.Server, c.what, text))
			}
		}
		if len(parts) > 0 {
			fmt.Fprintf(&b, "%s has a certificate %s\n", s.Server, strings.Join(parts, ", and "))
		}
		b.WriteString(strings.Join(warnings, ""))
	}
	return b.String()
}

// certificateWarning returns a warning about a certificate that expires soon; "": none is due.
func certificateWarning(left time.Duration) string {
	const day = 24 * time.Hour
	if left <= 0 {
		return "has expired: renew it now"
	}
	for _, w := range certificateWarnings {
		if left <= time.Duration(w.days)*day {
			if left < 2*day {
				return fmt.Sprintf("expires in %s: %s", Count(int(left.Hours()), "hour"), w.text)
			}
			return fmt.Sprintf("expires in %s: %s", Count(int(left/day), "day"), w.text)
		}
	}
	return ""
}
