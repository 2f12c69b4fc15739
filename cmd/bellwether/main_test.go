package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand returns c and all commands below it.
func everyCommand(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		all = append(append(all, sub), everyCommand(sub)...)
	}
	return all
}

// TestEveryCommandExplainsItself shows that each command has a short text for the list, that each flag has a
// help text, and that each command with arguments has a long text or an example.
func TestEveryCommandExplainsItself(t *testing.T) {
	all := everyCommand(newRoot())
	for _, c := range all {
		if c.Short == "" || strings.ToLower(c.Short[:1]) != c.Short[:1] || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short text %q", c.CommandPath(), c.Short)
		}
		if strings.Contains(c.Use, " ") && c.Long == "" && c.Example == "" {
			t.Errorf("%s: neither a long text nor an example", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s says nothing", c.CommandPath(), f.Name)
			}
		})
		if c.HasExample() && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: the example is of another command", c.CommandPath())
		}
		if !c.HasSubCommands() && c.RunE == nil {
			t.Errorf("%s does nothing", c.CommandPath())
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d commands were found", len(all))
	}
}

// TestCommandTree shows that the program has each command of a list.
func TestCommandTree(t *testing.T) {
	var names []string
	for _, c := range everyCommand(newRoot()) {
		names = append(names, c.CommandPath())
	}
	for _, want := range strings.Fields("serve data_backup data_check data_dump data_restore version completion help get set create delete deleteall " +
		"ls stat sync getAcl setAcl getAllChildrenNumber whoami config listquota setquota delquota status bench_read bench_write bench_create bench_mixed bench_ephemerals bench_latency bench_fanout bench_watches bench_sessions bench_election bench_restart bench_failover bench_memory bench_ceiling elect lock semaphore " +
		"election_log election_explain election_handover member_list member_plan member_add member_remove member_promote member_demote barrier_open barrier_close barrier_wait barrier_enter queue_push queue_pop watch recipes kick shadow") {
		if want = "bellwether " + strings.ReplaceAll(want, "_", " "); !slices.Contains(names, want) {
			t.Errorf("there is no %q", want)
		}
	}
}
