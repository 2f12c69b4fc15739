package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/shell"
)

const tlsCheckLong = `Say what a server accepts by TLS, when its certificates expire, and why connections fail.

With --config, the command reads a zoo.cfg and the files that it names. It prints the ports, versions and cipher suites,
who must show a certificate, the trusted authorities, the names that each member must prove, whether revocation is
checked, and when each certificate and revocation list expires. It also checks whether other members would accept this
server's own certificate. It connects to no server, but reads revocation lists and resolves names where zoo.cfg asks for
that.

With HOST:PORT, the command connects to a client, quorum or election port, carries out a handshake, and says what it
saw, or why the handshake failed. It sends nothing else, except the word srvr if the port seems to be without TLS.

Exit status, for scripts and monitoring: 0 all is well; 1 a fault: a file cannot be used, a certificate has expired or
would be refused, or the handshake failed; 2 the configuration or a flag is wrong; 3 no fault, but a certificate
expires within --warn-days, or there is another warning; 4 no connection.`

// exitWarned is the status of tls check if there is no fault, but a warning.
const exitWarned = 3

// tlsCheck holds the flags of tls check.
type tlsCheck struct {
	outputFlag
	config   string
	warnDays int
	port     portFlags
}

func newTLSCheck() *cobra.Command {
	var f tlsCheck
	c := &cobra.Command{
		Use:     "check [HOST:PORT]",
		Short:   "say what a server accepts by TLS, what expires when, and why a handshake fails",
		Long:    tlsCheckLong,
		Example: "  bellwether tls check --config zoo.cfg --warn-days 14\n  bellwether tls check zk1:2281 --tls-ca ca.pem --tls-cert client-app.pem",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.config == "") == (len(args) == 0) {
				return shell.Usage(errors.New("name a zoo.cfg with --config, or a server with HOST:PORT"))
			}
			if f.warnDays < 0 {
				return shell.Usage(fmt.Errorf("--warn-days %d: want 0 or more", f.warnDays))
			}
			r := &tlsReport{warnDays: f.warnDays, now: time.Now(), Certificates: []certReport{}, Faults: []string{}, Warnings: []string{}}
			var err error
			if len(args) > 0 {
				err = f.port.check(cmd.Context(), r, args[0])
			} else {
				err = checkTLSFiles(cmd.Context(), r, f.config)
			}
			if err != nil {
				return err
			}
			if err := r.print(cmd.OutOrStdout(), f.json()); err != nil {
				return err
			}
			return r.status()
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.config, "config", "", "a zoo.cfg, to check the files that it names")
	c.Flags().IntVar(&f.warnDays, "warn-days", 30, "warn if a certificate expires within this number of days")
	f.port.add(c, "with HOST:PORT")
	return c
}

// tlsReport holds what tls check has found.
type tlsReport struct {
	Ports        []portReport `json:"ports,omitempty"`
	Handshake    *seenReport  `json:"handshake,omitempty"`
	Certificates []certReport `json:"certificates"`
	Lists        []listReport `json:"revocation_lists,omitempty"`
	Faults       []string     `json:"faults"`
	Warnings     []string     `json:"warnings"`

	warnDays    int
	now         time.Time
	unreachable bool
}

// certReport is one certificate.
type certReport struct {
	File     string    `json:"file,omitempty"`
	Use      string    `json:"use"` // shown or trusted
	Subject  string    `json:"subject"`
	Issuer   string    `json:"issuer"`
	Names    []string  `json:"names,omitempty"`
	NotAfter time.Time `json:"not_after"`
	Days     int       `json:"days_left"`
}

// listReport is one revocation list.
type listReport struct {
	Place      string    `json:"place"`
	Issuer     string    `json:"issuer,omitempty"`
	NextUpdate time.Time `json:"next_update,omitzero"`
	Error      string    `json:"error,omitempty"`
}

func (r *tlsReport) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

func (r *tlsReport) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// certificate adds a certificate, and a fault or a warning if it has expired or soon will. An expired
// certificate that is only trusted is not a fault: others may be in use.
func (r *tlsReport) certificate(c certReport, notBefore time.Time) {
	left := c.NotAfter.Sub(r.now)
	c.Days = int(left.Hours() / 24)
	r.Certificates = append(r.Certificates, c)
	name := fmt.Sprintf("the certificate %q", c.Subject)
	if c.File != "" {
		name += " of " + c.File
	}
	switch at := c.NotAfter.UTC().Format(time.RFC3339); {
	case left <= 0 && c.Use == useTrusted:
		r.warn("%s is trusted, but expired at %s: what it has issued is refused; replace it", name, at)
	case left <= 0:
		r.fault("%s expired at %s: renew it", name, at)
	case r.now.Before(notBefore):
		r.fault("%s is not valid before %s: compare the clocks", name, notBefore.UTC().Format(time.RFC3339))
	case left <= time.Duration(r.warnDays)*24*time.Hour:
		r.warn("%s expires at %s, in %s: renew it", name, at, inDays(c.Days))
	}
}

// inDays prints a number of whole days.
func inDays(days int) string {
	if days == 0 {
		return "less than a day"
	}
	return shell.Count(days, "day")
}

// The values of certReport.Use.
const (
	useShown   = "shown"
	useTrusted = "trusted"
)

// status returns the error with the exit status of the command.
func (r *tlsReport) status() error {
	switch {
	case r.unreachable:
		return &shell.StatusError{Status: shell.ExitNoConnection}
	case len(r.Faults) > 0:
		return &shell.StatusError{Status: shell.ExitFailed}
	case len(r.Warnings) > 0:
		return &shell.StatusError{Status: exitWarned}
	}
	return nil
}

func (r *tlsReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	var b strings.Builder
	for _, p := range r.Ports {
		p.print(&b)
	}
	b.WriteString(withoutTLS(r.Ports))
	if r.Handshake != nil {
		r.Handshake.print(&b)
	}
	printCertificates(&b, r.Certificates)
	for _, l := range r.Lists {
		switch {
		case l.Error != "": // a fault reports it
		case l.NextUpdate.IsZero():
			fmt.Fprintf(&b, "revocation list %s of %q is valid without end\n", l.Place, l.Issuer)
		default:
			fmt.Fprintf(&b, "revocation list %s of %q is valid until %s\n", l.Place, l.Issuer, l.NextUpdate.UTC().Format(time.RFC3339))
		}
	}
	for _, text := range r.Faults {
		fmt.Fprintf(&b, "fault: %s\n", text)
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", text)
	}
	fmt.Fprintf(&b, "%s, %s\n", shell.Count(len(r.Faults), "fault"), shell.Count(len(r.Warnings), "warning"))
	_, err := io.WriteString(w, b.String())
	return err
}

// printCertificates prints a table.
func printCertificates(w io.Writer, all []certReport) {
	if len(all) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EXPIRES\tDAYS\tUSE\tCERTIFICATE\tNAMES\tFILE")
	for _, c := range all {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", c.NotAfter.UTC().Format(time.RFC3339), c.Days, c.Use, c.Subject, orDash(strings.Join(c.Names, ",")), orDash(c.File))
	}
	t.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
