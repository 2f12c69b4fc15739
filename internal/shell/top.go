package shell

import "github.com/spf13/cobra"

func newTop(base maker) *cobra.Command { return newStatus(base) }
