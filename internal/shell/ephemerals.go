package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/zk"
)

func newEphemerals(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "getEphemerals [PREFIX]",
		Short: "list the ephemeral znodes of the session",
		Long: "List the ephemeral znodes of the session whose paths begin with PREFIX. Outside of the shell, the session is\n" +
			"new and has none.",
		Example: "  bellwether getEphemerals\n  bellwether getEphemerals /app",
		Args:    argCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := append(args, "/")[0]
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				paths, err := zc.Ephemerals(ctx, prefix)
				if err != nil {
					return err
				}
				slices.Sort(paths)
				return a.print(struct {
					Ephemerals []string `json:"ephemerals"`
				}{append([]string{}, paths...)}, fmt.Sprintf("[%s]", strings.Join(paths, ", ")))
			})
		},
	}
}
