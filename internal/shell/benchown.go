package shell

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bellwether/internal/bench"
	"bellwether/zk"
)

// benchAlone makes the command of a measurement that needs no running servers.
func benchAlone(base maker, c *cobra.Command, m func(b *benchRun) (measurement, error)) *cobra.Command {
	b, keepSettings := newBenchRun(base, c)
	b.timeout = 10 * time.Second
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		b.out = c.OutOrStdout()
		return b.checkFlags()
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		keepSettings()
		measurement, err := m(b)
		if err != nil {
			return err
		}
		if err := measurement.Check(); err != nil {
			return usagef("%w", err)
		}
		ctx, stop := interruptions(cmd.Context(), func(signal string) { b.say(signal + ": ending what the run has started") })
		defer stop.end()
		return stop.status(b.run(ctx, measurement.Run))
	}
	_ = c.MarkFlagDirname("dir") // every such measurement has the flag
	b.outputFlag(c)
	addExitStatuses(c)
	addSignalStatuses(c)
	return c
}

// ownedFlags are the flags of measurements that start their own servers.
type ownedFlags struct {
	program, dir string
	session      time.Duration
}

func (o *ownedFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.program, "program", "", "command that serves with a zoo.cfg, {} in its place; split at blanks (default this program)")
	f.StringVar(&o.dir, "dir", "", "directory on the disk to measure (default the system's for temporary files)")
	f.DurationVar(&o.session, "session-timeout", 10*time.Second, "session timeout of the clients")
}

const ownedLong = "\n\nThe command starts its own servers on loopback, with new directories below --dir, and ends them and deletes the\n" +
	"directories afterwards. --program starts another kind of server, for example ZooKeeper:\n" +
	"  --program '/opt/zookeeper/bin/zkServer.sh start-foreground {}'"

// owned returns the settings for package bench.
func (o *ownedFlags) owned(b *benchRun) (bench.Owned, error) {
	words := strings.Fields(o.program)
	if o.program == "" {
		self, err := os.Executable()
		if err != nil {
			return bench.Owned{}, err
		}
		words = []string{self, "serve", "--config", "{}", "--while-stdin", "--log-level", "warn"}
	}
	if len(words) == 0 || !strings.Contains(strings.Join(words[1:], " "), "{}") {
		return bench.Owned{}, usagef("--program %q: want a command with {} in the place of the zoo.cfg", o.program)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return bench.Owned{}, usagef("--program: %w", err)
	}
	return bench.Owned{
		Program: func(config string) *exec.Cmd {
			args := make([]string, len(words)-1)
			for i, word := range words[1:] {
				args[i] = strings.ReplaceAll(word, "{}", config)
			}
			cmd := exec.Command(words[0], args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches only this process, which then ends the servers
			return cmd
		},
		Connect: func(ctx context.Context, servers string) (*zk.Client, error) {
			c := *b.app
			c.servers, c.session, c.auth, c.access = servers, o.session, nil, nil
			return c.connect(ctx)
		},
		Dir: o.dir,
	}, nil
}

func newBenchRestart(base maker) *cobra.Command {
	var m bench.Restart
	var o ownedFlags
	c := &cobra.Command{
		Use:     "restart",
		Short:   "time from the start of a killed server to its first answer",
		Long:    "Fill a standalone server, kill it (SIGKILL), start it again, and measure the time until it has answered a read." + ownedLong,
		Example: "  bellwether bench restart --znodes 1000000 --rounds 5",
	}
	c.Flags().IntVar(&m.Znodes, "znodes", 100_000, "znodes in the tree")
	c.Flags().IntVar(&m.Size, "size", 100, "bytes of data per znode")
	c.Flags().IntVar(&m.Rounds, "rounds", 5, "how often the server is killed")
	o.add(c.Flags())
	return benchAlone(base, c, func(b *benchRun) (_ measurement, err error) {
		m.Owned, err = o.owned(b)
		return m, err
	})
}

func newBenchMemory(base maker) *cobra.Command {
	var m bench.Memory
	var o ownedFlags
	c := &cobra.Command{
		Use:   "memory",
		Short: "memory per znode, watch and session",
		Long: "Add znodes, then watches, then sessions to a standalone server, and measure by how many bytes its resident\n" +
			"memory grows for each. A server with a garbage collector also keeps memory that it could free." + ownedLong,
		Example: "  bellwether bench memory --znodes 1000000 --watches 100000 --sessions 1000",
	}
	c.Flags().IntVar(&m.Znodes, "znodes", 100_000, "number of znodes")
	c.Flags().IntVar(&m.Size, "size", 100, "bytes of data per znode")
	c.Flags().IntVar(&m.Watches, "watches", 10_000, "number of watches, at most one per znode")
	c.Flags().IntVar(&m.Sessions, "sessions", 100, "number of sessions")
	o.add(c.Flags())
	return benchAlone(base, c, func(b *benchRun) (_ measurement, err error) {
		m.Owned, err = o.owned(b)
		return m, err
	})
}

func newBenchFailover(base maker) *cobra.Command {
	m := bench.Failover{}
	var o ownedFlags
	failures := []string{}
	c := &cobra.Command{
		Use:   "failover",
		Short: "time without a write when the leader fails",
		Long: "Make the leader of an ensemble fail, and measure the longest time from one acknowledged write to the next, for a\n" +
			"client of the failed server and for a client of another server. The failures are kill (SIGKILL), stop (SIGTERM)\n" +
			"and pause (SIGSTOP); after a pause, a client of the paused server first has to notice that it does not answer." + ownedLong,
		Example: "  bellwether bench failover --rounds 20\n  bellwether bench failover --failures kill,stop --servers 5\n  bellwether bench failover --failures kill --znodes 1000000",
	}
	c.Flags().IntVar(&m.Servers, "servers", 3, "servers of the ensemble, 3 to 9")
	c.Flags().IntVar(&m.Znodes, "znodes", 1, "znodes in the tree")
	c.Flags().IntVar(&m.Size, "size", 100, "bytes of data per znode")
	c.Flags().IntVar(&m.Rounds, "rounds", 5, "failures of each kind")
	c.Flags().StringSliceVar(&failures, "failures", []string{"kill", "stop", "pause"}, "kinds of failures")
	_ = c.RegisterFlagCompletionFunc("failures", cobra.FixedCompletions([]string{"kill", "stop", "pause"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	o.add(c.Flags())
	return benchAlone(base, c, func(b *benchRun) (_ measurement, err error) {
		m.Failures = nil
		for _, name := range failures {
			m.Failures = append(m.Failures, bench.Failure(name))
		}
		m.Owned, err = o.owned(b)
		return m, err
	})
}

func newBenchCeiling(base maker) *cobra.Command {
	var m bench.Ceiling
	c := &cobra.Command{
		Use:   "ceiling",
		Short: "what this machine allows, without a server of ZooKeeper's protocol",
		Long: "Measure what no server can exceed on this machine: requests to a process that answers at once, with the frames of\n" +
			"getData and setData, and appends to a file in --dir with an fsync after each transaction and after each --batch\n" +
			"of them, with the bytes of setData's transactions. Here the processor time of the servers is that of the process\n" +
			"that answers. The latency of a transaction in a batch is that of the batch. The last line says how often, and for\n" +
			"how long, the machine stopped as a whole while a loop kept each core busy and another one the disk: a host may\n" +
			"limit a virtual machine like that. No server's highest percentiles can be below these pauses.",
		Example: "  bellwether bench ceiling --connections 32 --outstanding 16 --dir /var/lib/zookeeper",
	}
	f := c.Flags()
	f.IntVar(&m.Connections, "connections", 1, "connections")
	f.IntVar(&m.Outstanding, "outstanding", 1, "requests in flight per connection")
	f.IntVar(&m.Size, "size", 100, "bytes of data per request")
	f.IntVar(&m.Batch, "batch", 256, "transactions in a batch")
	f.StringVar(&m.Dir, "dir", "", "directory on the disk to measure (default the system's for temporary files)")
	f.DurationVar(&m.Warmup, "warmup", time.Second, "time before each measurement starts")
	f.DurationVar(&m.Duration, "duration", 5*time.Second, "duration of each measurement")
	return benchAlone(base, c, func(*benchRun) (measurement, error) {
		self, err := os.Executable()
		m.Echo = func(request, reply int) *exec.Cmd {
			return exec.Command(self, "bench", "echo", strconv.Itoa(request), strconv.Itoa(reply))
		}
		return m, err
	})
}

// newBenchEcho makes the command that bench ceiling starts.
func newBenchEcho() *cobra.Command {
	return &cobra.Command{
		Use:    "echo REQUEST REPLY",
		Short:  "answer requests of REQUEST bytes with REPLY bytes, for bench ceiling",
		Long:   "Answer each request of REQUEST bytes with REPLY bytes. The command prints its address, and ends with its standard input.",
		Hidden: true,
		Args:   argCount(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			var lengths [2]int
			for i, arg := range args {
				n, err := strconv.Atoi(arg)
				if err != nil || n < 1 || n > bench.FrameMax {
					return usagef("%q: want 1 to %d bytes", arg, bench.FrameMax)
				}
				lengths[i] = n
			}
			return bench.Echo(lengths[0], lengths[1], os.Stdout, os.Stdin)
		},
	}
}
