package shell

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/clientconfig"
	"bellwether/internal/fourletter"
)

// accessFlags adds the flags for TLS and for logging in. The login ends with the command.
func (a *app) accessFlags(c *cobra.Command) {
	f := c.Flags()
	for _, s := range clientconfig.Settings {
		usage := s.Usage + " (default $" + s.Env + ")"
		if s.Default != "" {
			usage = s.Usage + " (default $" + s.Env + " or " + s.Default + ")"
		}
		switch s.Flag {
		case "":
		case "tls":
			f.Bool(s.Flag, false, usage)
		default:
			f.String(s.Flag, "", usage)
		}
	}
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		defer func() { a.access.Close() }()
		return run(c, args)
	}
}

// loadAccess reads the flags and the environment for TLS and for logging in.
func (a *app) loadAccess(c *cobra.Command) error {
	flag := func(name string) (string, bool) {
		f := c.Flags().Lookup(name)
		return f.Value.String(), f.Changed
	}
	access, err := clientconfig.Load(flag, os.Getenv)
	if err != nil {
		return usagef("%w", err)
	}
	for _, text := range access.Notices {
		a.say(text)
	}
	access.Warn = a.say
	a.access = access
	return nil
}

func (a *app) say(text string) { fmt.Fprintf(a.err, "bellwether: %s\n", text) }

// word sends a four-letter word to a server, with TLS if clients use it, and returns the
// answer.
func (a *app) word(ctx context.Context, server, w string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := a.access.Dial(ctx, server)
	if err != nil {
		return "", err
	}
	text, err := fourletter.Ask(ctx, conn, w, timeout)
	if err != nil && text == "" {
		return "", fmt.Errorf("%w%s", err, a.withoutTLS())
	}
	return text, err
}

// withoutTLS returns the end of a message about a server that gives no answer. A port for TLS does
// not answer a connection without TLS, so the end names the flags for TLS if none is given.
func (a *app) withoutTLS() string {
	if a.access.UsesTLS() {
		return ""
	}
	return "; if its port is for TLS, use --tls-ca and --tls-cert"
}
