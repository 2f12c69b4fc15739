//lint:file-ignore ST1005 some texts are ZooKeeper's

package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/quota"
	"bellwether/zk"
)

// limitsNode and statsNode are the last elements of the paths of a quota's znodes.
const (
	limitsNode = "/" + quota.LimitsName
	statsNode  = "/" + quota.StatsName
)

// noQuotaError and the next two functions return errors in the words of ZooKeeper's CLI.
func noQuotaError(path string) error    { return fmt.Errorf("quota for %s does not exist.", path) }
func noQuotaToDelete(path string) error { return fmt.Errorf("Quota does not exist for %s", path) }
func noNodeForQuota(path string) error  { return fmt.Errorf("%s does not exist.", path) }

func newListQuota(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "listquota PATH",
		Short:   "show the quota of a path and its usage",
		Example: "  bellwether listquota /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.shell != nil && !a.json() {
				fmt.Fprintf(a.err, "absolute path is %s\n", quota.Root+args[0]+limitsNode)
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				limits, _, err := zc.Get(ctx, quota.Root+args[0]+limitsNode)
				if isNoNode(err) {
					return noQuotaError(args[0])
				}
				if err != nil {
					return err
				}
				stats, _, err := zc.Get(ctx, quota.Root+args[0]+statsNode)
				if err != nil && !isNoNode(err) {
					return err
				}
				if a.json() {
					return printJSON(a.out, struct {
						Path  string `json:"path"`
						Quota string `json:"quota"`
						Stat  string `json:"stat"`
					}{args[0], string(limits), string(stats)})
				}
				fmt.Fprintf(a.out, "Output quota for %s %s\nOutput stat for %s %s\n", args[0], limits, args[0], stats)
				return nil
			})
		},
	}
}

// quotaFlags are the flags of the four limits.
var quotaFlags = []struct{ name, short, usage string }{
	{"count", "n", "soft limit of znodes"},
	{"bytes", "b", "soft limit of data bytes"},
	{"hard-count", "N", "hard limit of znodes"},
	{"hard-bytes", "B", "hard limit of data bytes"},
}

func newSetQuota(a *app) *cobra.Command {
	limits := [4]int64{}
	c := &cobra.Command{
		Use:   "setquota -n|-b|-N|-B N PATH",
		Short: "limit the number of znodes or bytes below a path",
		Long: "Limit the number of znodes or of data bytes at and below a path. A server logs an excess of a\n" +
			"soft limit; with enforceQuota it refuses an excess of a hard limit.",
		Example: "  bellwether setquota -n 1000 -B 10000000 /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				return setQuota(ctx, zc, args[0], func(q *quota.Quota) {
					for i, field := range quotaFields(q) {
						if cmd.Flags().Changed(quotaFlags[i].name) {
							*field = limits[i]
						}
					}
				})
			})
		},
	}
	var names []string
	for i, f := range quotaFlags {
		c.Flags().Int64VarP(&limits[i], f.name, f.short, -1, f.usage)
		names = append(names, f.name)
	}
	c.MarkFlagsOneRequired(names...)
	return c
}

// quotaFields returns the limits in the order of quotaFlags.
func quotaFields(q *quota.Quota) []*int64 {
	return []*int64{&q.Count, &q.Bytes, &q.HardCount, &q.HardBytes}
}

// setQuota changes the quota of a path and creates it if there is none. It refuses a quota
// above or below another one, because the servers count usage only once.
func setQuota(ctx context.Context, zc *zk.Client, path string, change func(*quota.Quota)) error {
	if _, ok, err := zc.Exists(ctx, path); err != nil || !ok {
		if err == nil {
			err = noNodeForQuota(path)
		}
		return err
	}
	at := quota.Root + path
	old, st, err := zc.Get(ctx, at+limitsNode)
	if err == nil {
		return changeLimits(ctx, zc, path, old, st.Version, change)
	}
	if !isNoNode(err) {
		return err
	}
	if err := noOtherQuota(ctx, zc, path); err != nil {
		return err
	}
	if err := createParents(ctx, zc, at); err != nil {
		return err
	}
	q := quota.None()
	change(&q)
	_, err = zc.Multi(ctx,
		zk.CreateOp(at+limitsNode, []byte(q.Limits())),
		zk.CreateOp(at+statsNode, []byte(quota.Quota{}.Usage())))
	return err
}

// changeLimits changes the limits of a path. It refuses text that is not a quota: a
// server obeys the part that it can read, and writing only that part would lose the rest.
func changeLimits(ctx context.Context, zc *zk.Client, path string, old []byte, version int32, change func(*quota.Quota)) error {
	at := quota.Root + path + limitsNode
	q, ok := quota.Parse(string(old))
	if !ok {
		return fmt.Errorf("%s: %q is not the text of a quota: correct it with set, or remove the quota with delquota %s", at, old, path)
	}
	change(&q)
	_, err := zc.Set(ctx, at, []byte(q.Limits()), version)
	return err
}

// noOtherQuota fails if a path above or below has a quota.
func noOtherQuota(ctx context.Context, zc *zk.Client, path string) error {
	for at := path; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if _, ok, err := zc.Exists(ctx, quota.Root+at+limitsNode); err != nil || ok {
			if err == nil {
				err = fmt.Errorf("%s has a parent %s which has a quota", path, at)
			}
			return err
		}
	}
	err := walk(ctx, zc, quota.Root+path, func(p string) error {
		if below, ok := strings.CutSuffix(p, limitsNode); ok {
			return fmt.Errorf("%s has a child %s which has a quota", path, strings.TrimPrefix(below, quota.Root))
		}
		return nil
	})
	if isNoNode(err) {
		return nil
	}
	return err
}

// createParents creates a path and its missing parents.
func createParents(ctx context.Context, zc *zk.Client, path string) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if _, _, err := zc.Create(ctx, path[:i], nil); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

func newDelQuota(a *app) *cobra.Command {
	var drop [4]bool
	c := &cobra.Command{
		Use:     "delquota [-n|-b|-N|-B] PATH",
		Short:   "remove a limit of a path, or its whole quota",
		Example: "  bellwether delquota -n /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				at := quota.Root + args[0]
				old, st, err := zc.Get(ctx, at+limitsNode)
				if isNoNode(err) {
					return noQuotaToDelete(args[0])
				}
				if err != nil {
					return err
				}
				if drop == [4]bool{} {
					return deleteQuota(ctx, zc, at)
				}
				return changeLimits(ctx, zc, args[0], old, st.Version, func(q *quota.Quota) {
					for i, field := range quotaFields(q) {
						if drop[i] {
							*field = -1
						}
					}
				})
			})
		},
	}
	for i, f := range quotaFlags {
		c.Flags().BoolVarP(&drop[i], f.name, f.short, false, "remove the "+f.usage)
	}
	return c
}

// deleteQuota deletes the znodes of a quota, and those above them that have no other child.
func deleteQuota(ctx context.Context, zc *zk.Client, at string) error {
	_, err := zc.Multi(ctx, zk.DeleteOp(at+limitsNode, zk.AnyVersion), zk.DeleteOp(at+statsNode, zk.AnyVersion))
	for ; err == nil && at != quota.Root; at = at[:strings.LastIndexByte(at, '/')] {
		err = zc.Delete(ctx, at, zk.AnyVersion)
	}
	if errors.Is(err, zk.ErrNotEmpty) || isNoNode(err) { // others have a quota there, or delete it too
		return nil
	}
	return err
}
