package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

const completionLong = `Print a script that lets a shell complete commands and flags.

  bash   source <(bellwether completion bash)
         for every session: put its output into /etc/bash_completion.d/bellwether (needs bash-completion)
  zsh    source <(bellwether completion zsh)
         for every session: put its output into a file _bellwether in a directory of $fpath
  fish   bellwether completion fish | source
         for every session: put its output into ~/.config/fish/completions/bellwether.fish`

func newCompletion(root *cobra.Command) *cobra.Command {
	// cobra's own completion command has texts in another style, so ours replaces it.
	root.CompletionOptions.DisableDefaultCmd = true
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "print a completion script for a shell",
		Long:      completionLong,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			}
			return fmt.Errorf("no completion for %q: want bash, zsh or fish", args[0])
		},
	}
}
