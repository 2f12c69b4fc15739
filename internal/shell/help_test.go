package shell

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpOfEveryCommand shows that the help of every command that talks to servers says
// what it does, gives an example, and lists the exit statuses.
func TestHelpOfEveryCommand(t *testing.T) {
	commands := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			look(below)
		}
		if c.HasSubCommands() || c.Hidden || c.Flags().Lookup("server") == nil {
			return
		}
		commands++
		if !strings.Contains(strings.ToLower(c.Long), "exit status") {
			t.Errorf("%s: no exit statuses in the help:\n%s", c.CommandPath(), c.Long)
		}
		if !strings.Contains(c.Example, "bellwether "+c.CommandPath()) {
			t.Errorf("%s: no example in %q", c.CommandPath(), c.Example)
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q", c.CommandPath(), c.Short)
		}
	}
	for _, c := range Commands() {
		look(c)
	}
	if commands < 30 {
		t.Errorf("only %d commands were found", commands)
	}
}
