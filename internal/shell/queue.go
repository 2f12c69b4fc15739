package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

func newQueue(base maker) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "queue",
		Short: "put items into a queue and take each of them out once",
	}, dataCommand(base, newQueuePush), newQueuePop(base))
}

// queueFlags are the flags that select the kind of queue.
type queueFlags struct {
	ack    bool
	naming string
}

func (f *queueFlags) options() (*recipe.QueueOptions, error) {
	naming, ok := map[string]recipe.QueueNaming{
		"own": recipe.OwnItems, "kazoo": recipe.KazooItems, "plain": recipe.PlainItems,
	}[f.naming]
	if !ok {
		return nil, fmt.Errorf("--naming %q: want own, kazoo or plain", f.naming)
	}
	return &recipe.QueueOptions{Naming: naming}, nil
}

// producer is the part of both kinds of queue that adds items.
type producer interface {
	PutPriority(ctx context.Context, data []byte, priority int) error
}

func (f *queueFlags) producer(zc *zk.Client, path string) (producer, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	if f.ack {
		return recipe.NewWorkQueue(zc, path, o)
	}
	return recipe.NewQueue(zc, path, o)
}

const pushLong = `Put items into the queue at PATH: DATA, or each line of standard input. An item is added exactly once, even if replies
are lost. With --ack, items stay in the queue until they are acknowledged; use queue pop --ack for such a queue.`

func newQueuePush(a *app) *cobra.Command {
	var f queueFlags
	priority := 0
	c := &cobra.Command{
		Use:   "push PATH [DATA]",
		Short: "put an item into a queue, or each line of standard input",
		Long:  pushLong,
		Example: "  bellwether queue push /events 'it rains'\n" +
			"  find . -name '*.wav' | bellwether queue push --ack /encode",
		Args: argCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := f.producer(unconnected, args[0]); err != nil {
				return usagef("%w", err)
			}
			return a.withoutTimeout(cmd, func(ctx context.Context, zc *zk.Client) error {
				q, err := f.producer(zc, args[0])
				if err != nil {
					return err
				}
				put := func(data []byte) error { return q.PutPriority(ctx, data, priority) }
				if len(args) == 2 {
					err = put([]byte(args[1]))
				} else {
					err = a.eachLine(put)
				}
				if errors.Is(err, recipe.ErrPriority) {
					return usagef("--priority %d: %w", priority, err)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&f.ack, "ack", false, "items stay until they are acknowledged")
	c.Flags().StringVar(&f.naming, "naming", "own", "naming convention of the programs that share PATH: own, kazoo, or plain for Curator and others")
	c.Flags().IntVar(&priority, "priority", 100, "from 0 (most urgent) to 999")
	return c
}

// lineMax is the length of the longest accepted line of standard input; no server accepts
// more data.
const lineMax = 1 << 20

// eachLine calls f for each line of standard input. An error names the line.
func (a *app) eachLine(f func([]byte) error) error {
	lines, n := bufio.NewScanner(a.in), 1
	lines.Buffer(nil, lineMax)
	for ; lines.Scan(); n++ {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, cliError(err))
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d bytes, the limit for a znode", n, lineMax)
	}
	return lines.Err()
}

const popLong = `Take the next item out of the queue at PATH and print it. If the queue is empty, wait for an item. An item that could not
be printed goes back to its place in the queue; the exit status is then 1, or 141 if the reader of the output has closed
the pipe. An item is lost only if this process is killed (SIGKILL, for example) between taking and printing it.

With --ack, the command is run with the item as its standard input. If it ends with status 0, the item is acknowledged.
Otherwise, or if this process dies, the item is available again in its old place. The command runs under a guardian, as
with bellwether lock: it is killed before another process can get the item. Its environment contains

  BELLWETHER_QUEUE  PATH
  BELLWETHER_ITEM   the path of the item; use it to recognise an item whose work was begun before

`

func newQueuePop(base maker) *cobra.Command {
	r := newRunner(base)
	r.variable, r.claim, r.obtained, r.others = "QUEUE", "the item", "given an item", "nobody else works on the item"
	var f queueFlags
	c := &cobra.Command{
		Use:   "pop [flags] PATH [--ack -- COMMAND [ARGUMENT]...]",
		Short: "take the next item out of a queue, or run a command with it",
		Long:  popLong + fmt.Sprintf(holdStatus, "the item", "given an item") + withoutCommandStatus,
		Example: "  bellwether queue pop /events\n" +
			"  while bellwether queue pop --ack /encode -- sh -c 'read f; ./encode \"$f\"'; do :; done",
		Args: func(c *cobra.Command, args []string) error {
			err := r.takePath(c, args)
			if err == nil && f.ack != (len(r.argv) > 0) {
				err = errors.New("--ack requires a command, and a command requires --ack")
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.ack {
				return r.work(cmd.Context())
			}
			return r.take(cmd.Context())
		},
	}
	r.flags(c)
	r.outputFlag(c)
	c.Flags().BoolVar(&f.ack, "ack", false, "run a command, and acknowledge the item if it ends with status 0")
	return c
}

// take takes one item and prints it. An item that could not be printed goes back into the
// queue.
func (r *runner) take(ctx context.Context) error {
	defer survivingSIGPIPE()()
	var q *recipe.Queue
	prepare := func(zc *zk.Client) (err error) {
		q, err = recipe.NewQueue(zc, r.parent, nil)
		return err
	}
	return r.open(ctx, prepare, func(*zk.Client) error {
		ctx, stop := untilUnread(ctx, r.out)
		defer stop()
		err := r.await(ctx, func(ctx context.Context) error { return q.TakeTo(ctx, r.printItem) })
		if errors.Is(err, syscall.EPIPE) {
			return NotWritten(err)
		}
		return err
	})
}

// printItem prints an item and closes the output, so that write errors are known.
func (r *runner) printItem(data []byte) error {
	err := r.printData(data)
	if o, ok := r.out.(*Output); ok && err == nil {
		err = o.Close()
	}
	return err
}

func (r *runner) printData(data []byte) error {
	if r.json() {
		return printJSON(r.out, DataOf(data))
	}
	_, err := fmt.Fprintf(r.out, "%s\n", data)
	return err
}

// work runs the command with one item.
func (r *runner) work(ctx context.Context) error {
	var it *recipe.Item
	r.environ = func(standing) []string {
		return []string{"BELLWETHER_QUEUE=" + r.parent, "BELLWETHER_ITEM=" + it.Path()}
	}
	r.settle = func(ctx context.Context, _ standing, status int) error { return r.done(ctx, it, status) }
	return r.run(ctx, func(zc *zk.Client) error {
		q, err := recipe.NewWorkQueue(zc, r.parent, nil)
		r.obtain = func(ctx context.Context) (standing, error) {
			if it, err = q.Take(ctx); err != nil {
				return nil, err
			}
			if r.stdin, err = feed(it.Data); err != nil {
				return nil, errors.Join(err, it.Release(ctx))
			}
			return r.claimSession(zc, it.Session()), nil
		}
		return err
	})
}

// done acknowledges the item, or releases it if the command failed.
func (r *runner) done(ctx context.Context, it *recipe.Item, status int) error {
	if status != ExitDone {
		return it.Release(ctx)
	}
	err := it.Ack(ctx)
	if errors.Is(err, recipe.ErrTaken) || errors.Is(err, wire.ErrSessionExpired) {
		return &StatusError{ExitLost, fmt.Errorf("%s is lost: %w", r.claim, err)}
	}
	return err
}

// feed returns an unnamed temporary file that contains data, as a command's standard input.
func feed(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "bellwether-item-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
