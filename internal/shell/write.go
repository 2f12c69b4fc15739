package shell

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/terminal"
	"bellwether/zk"
)

// inputMax is how much data the argument - reads from standard input, in bytes. No server
// accepts as much.
const inputMax = 64 << 20

// dataArg returns the data of an argument; - reads standard input, but not in the interactive shell.
func (a *app) dataArg(s string, b64 bool) ([]byte, error) {
	data := []byte(s)
	if s == "-" && a.shell == nil {
		var err error
		if data, err = io.ReadAll(io.LimitReader(a.in, inputMax+1)); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		if len(data) > inputMax {
			return nil, fmt.Errorf("standard input has more than %d bytes", inputMax)
		}
	}
	if !b64 {
		return data, nil
	}
	out, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, usagef("data is not base64: %v", err)
	}
	return out, nil
}

func newSet(a *app) *cobra.Command {
	var (
		stat, b64 bool
		version   int32
	)
	c := &cobra.Command{
		Use:     "set PATH DATA",
		Short:   "replace a znode's data",
		Long:    a.setLong(),
		Example: "  bellwether set -v 3 /app/config 'a=1'\n  bellwether set /app/config - < file",
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := a.dataArg(args[1], b64)
			if err != nil {
				return err
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				st, err := zc.Set(ctx, args[0], data, version)
				if err != nil || !stat && !a.json() {
					return err
				}
				return a.printPathStat(args[0], st)
			})
		},
	}
	f := c.Flags()
	f.BoolVarP(&stat, "stat", "s", false, "print the new stat")
	f.BoolVarP(&b64, "base64", "b", false, "DATA is base64")
	f.Int32VarP(&version, "version", "v", zk.AnyVersion, "only if the data version is this; -1: any")
	return c
}

func (a *app) setLong() string {
	if a.shell != nil {
		return "Replace a znode's data."
	}
	return "Replace a znode's data; - as DATA reads standard input."
}

func newCreate(a *app) *cobra.Command {
	var (
		sequential, ephemeral, container, hold bool
		ttl                                    int64
	)
	c := &cobra.Command{
		Use:     "create PATH [DATA [ACL]]",
		Short:   "create a znode",
		Long:    a.createLong(),
		Example: "  bellwether create /app 'hello'\n  bellwether create -s /jobs/n-\n  bellwether create -e --hold /here",
		Args:    argCount(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := createOptions(sequential, ephemeral, container, ttl)
			if err != nil {
				return err
			}
			var data []byte
			if len(args) > 1 {
				if data, err = a.dataArg(args[1], false); err != nil {
					return err
				}
			}
			if len(args) > 2 {
				list, err := parseACL(args[2])
				if err != nil {
					return err
				}
				opts = append(opts, zk.ACLs(list))
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				path, st, err := zc.Create(ctx, args[0], data, opts...)
				if err != nil {
					return err
				}
				if a.json() {
					err = a.printPathStat(path, st)
				} else {
					_, err = fmt.Fprintf(a.out, "Created %s\n", path)
				}
				if ephemeral && err == nil && a.shell == nil {
					return keepEphemeral(ctx, zc, hold)
				}
				return err
			})
		},
	}
	f := c.Flags()
	f.BoolVarP(&sequential, "sequential", "s", false, "append an increasing number to the name")
	f.BoolVarP(&ephemeral, "ephemeral", "e", false, "delete it when the session ends")
	f.BoolVarP(&container, "container", "c", false, "delete it some time after its last child was deleted")
	f.Int64VarP(&ttl, "ttl", "t", 0, "delete it after this many milliseconds without children and changes")
	if a.shell == nil {
		f.BoolVar(&hold, "hold", false, "with -e: keep the session until interrupted")
	}
	c.MarkFlagsMutuallyExclusive("container", "ephemeral")
	c.MarkFlagsMutuallyExclusive("container", "sequential")
	c.MarkFlagsMutuallyExclusive("ttl", "ephemeral")
	c.MarkFlagsMutuallyExclusive("ttl", "container")
	return c
}

// createLong is the help text of create.
func (a *app) createLong() string {
	const acl = "ACL is scheme:id:perms[,…].\n"
	if a.shell != nil {
		return "Create a znode. Without DATA it has null data. " + acl +
			"An ephemeral znode lives as long as the session of the shell."
	}
	return "Create a znode. Without DATA it has null data; - reads standard input. " + acl +
		"An ephemeral znode lives as long as the session of the command: with --hold until the command is\n" +
		"interrupted, without it until the session times out."
}

func createOptions(sequential, ephemeral, container bool, ttl int64) ([]zk.CreateOption, error) {
	var mode zk.Mode
	if sequential {
		mode |= zk.Sequential
	}
	if ephemeral {
		mode |= zk.Ephemeral
	}
	if container {
		mode |= zk.Container
	}
	opts := []zk.CreateOption{mode}
	if ttl < 0 {
		return nil, usagef("--ttl %d: want milliseconds above 0", ttl)
	}
	if ttl > 0 {
		opts = append(opts, zk.TTL(time.Duration(ttl)*time.Millisecond))
	}
	return opts, nil
}

// keepEphemeral keeps the session until a signal, or lets it time out if hold is not set.
func keepEphemeral(ctx context.Context, zc *zk.Client, hold bool) error {
	if !hold {
		zc.Detach()
		return nil
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for s := range zc.States(ctx) {
		if s.State == zk.Expired {
			return errors.New("the session expired, so the znode was deleted")
		}
	}
	return nil
}

func newDelete(a *app) *cobra.Command {
	var version int32
	c := &cobra.Command{
		Use:     "delete PATH",
		Short:   "delete a znode that has no children",
		Example: "  bellwether delete /app/old\n  bellwether delete -v 3 /app/config",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				return zc.Delete(ctx, args[0], version)
			})
		},
	}
	c.Flags().Int32VarP(&version, "version", "v", zk.AnyVersion, "only if the data version is this; -1: any")
	return c
}

func newDeleteAll(a *app) *cobra.Command {
	var batch int
	c := &cobra.Command{
		Use:   "deleteall PATH",
		Short: "delete a znode and everything below it",
		Long: "Delete a znode and everything below it, children first, in transactions of --batch znodes. Znodes that\n" +
			"others create meanwhile are deleted too; the command fails if others keep creating them.",
		Example: "  bellwether deleteall /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if batch < 1 {
				return usagef("--batch %d: want 1 or more", batch)
			}
			if args[0] == "/" {
				return usagef("/ cannot be deleted: name a znode below it")
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				if _, found, err := zc.Exists(ctx, args[0]); err != nil {
					return err
				} else if !found {
					return &zk.OpError{Op: "delete", Path: args[0], Err: zk.ErrNoNode}
				}
				bar := a.bar("deleteall")
				defer bar.Close()
				progress := zk.DeleteProgress(func(deleted, found int) { bar.Set(int64(deleted), int64(found)) })
				return zc.DeleteRecursive(ctx, args[0], zk.Batch(batch), progress)
			})
		},
	}
	c.Flags().IntVarP(&batch, "batch", "b", 1000, "how many to delete in one transaction")
	return c
}

// bar returns a progress bar for a long command; it shows nothing with -o json, or if standard error is not a terminal.
func (a *app) bar(what string) *terminal.Bar {
	if a.json() {
		return nil
	}
	return terminal.NewBar(os.Stderr, what)
}

func isNoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }
