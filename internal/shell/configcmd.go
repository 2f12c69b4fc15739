package shell

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/wire"
	"bellwether/zk"
)

func newConfig(a *app) *cobra.Command {
	var stat, watch, clients bool
	c := &cobra.Command{
		Use:   "config",
		Short: "show the ensemble's configuration as its servers agreed on it",
		Long: "Show the ensemble's configuration: what the servers agreed on, not what their files say. -c prints its version\n" +
			"and the servers' addresses for clients.",
		Example: "  bellwether config | grep ^server\n  bellwether config -c",
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				text, st, w, err := configMaybeWatch(ctx, zc, a.wantsWatch(watch, dataWatch, configNode))
				if err != nil {
					return err
				}
				if err := a.printConfig(string(text), st, clients, stat); err != nil {
					return err
				}
				return a.waitEvent(ctx, dataWatch, configNode, w, nil)
			})
		},
	}
	f := c.Flags()
	f.BoolVarP(&clients, "clients", "c", false, "print the version, and the addresses for clients")
	f.BoolVarP(&stat, "stat", "s", false, "print the stat too")
	f.BoolVarP(&watch, "watch", "w", false, a.watchUsage())
	return c
}

func (a *app) printConfig(text string, st wire.Stat, clients, stat bool) error {
	if a.json() {
		return printJSON(a.out, struct {
			Config  string    `json:"config"`
			Clients []string  `json:"clients,omitempty"`
			Stat    *statJSON `json:"stat,omitempty"`
		}{text, configClients(text, clients), statIf(st, stat)})
	}
	if clients {
		version := ""
		for line := range strings.Lines(text) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "version="); ok {
				version = v
			}
		}
		text = version + " " + strings.Join(configClients(text, true), ",")
	}
	if _, err := fmt.Fprintln(a.out, text); err != nil {
		return err
	}
	if stat {
		printStat(a.out, st)
	}
	return nil
}

// configClients returns the addresses for clients in a configuration text, in the order of the
// servers; nil if they are not wanted.
func configClients(text string, wanted bool) []string {
	m, err := ensemble.Parse(text)
	if err != nil || !wanted {
		return nil
	}
	var all []string
	for _, s := range m.Servers() {
		if !s.Client.IsZero() {
			all = append(all, s.Client.String())
		}
	}
	return all
}

func statIf(st wire.Stat, wanted bool) *statJSON {
	if !wanted {
		return nil
	}
	return statOf(st)
}

func configMaybeWatch(ctx context.Context, zc *zk.Client, watch bool) ([]byte, wire.Stat, *zk.Watch, error) {
	if watch {
		return zc.GetW(ctx, configNode)
	}
	text, st, err := zc.Config(ctx)
	return text, st, nil, err
}

// configNode is the znode with the configuration.
const configNode = "/zookeeper/config"
