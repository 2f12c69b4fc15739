package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/zk"
)

// A quota is stored in two znodes below quotaRoot and the path.
const (
	quotaRoot   = "/zookeeper/quota"
	quotaLimits = "/zookeeper_limits"
	quotaStats  = "/zookeeper_stats"
)

// quota is the text of a limits or stats znode; -1 is no limit.
type quota struct{ count, bytes, hardCount, hardBytes int64 }

func noQuota() quota { return quota{-1, -1, -1, -1} }

// parseQuota reads what any version of ZooKeeper writes; what it does not
// know it passes over.
func parseQuota(s string) quota {
	q := noQuota()
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(strings.Trim(value, "="), 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "count":
			q.count = n
		case "bytes":
			q.bytes = n
		case "countHardLimit":
			q.hardCount = n
		case "byteHardLimit":
			q.hardBytes = n
		}
	}
	return q
}

// noQuotaError is worded as ZooKeeper's CLI does.
func noQuotaError(path string) error { return fmt.Errorf("quota for %s does not exist", path) }

// String is the form that servers since 3.7 write and older ones still read.
func (q quota) String() string {
	return fmt.Sprintf("count=%d,bytes=%d=;byteHardLimit=%d;countHardLimit=%d", q.count, q.bytes, q.hardBytes, q.hardCount)
}

func newListQuota(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "listquota PATH",
		Short:   "show the quota of a path and its usage",
		Example: "  bellwether listquota /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				limits, _, err := zc.Get(ctx, quotaRoot+args[0]+quotaLimits)
				if isNoNode(err) {
					return noQuotaError(args[0])
				}
				if err != nil {
					return err
				}
				stats, _, err := zc.Get(ctx, quotaRoot+args[0]+quotaStats)
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
				return setQuota(ctx, zc, args[0], func(q *quota) {
					for i, field := range q.fields() {
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

// fields returns the limits in the order of quotaFlags.
func (q *quota) fields() []*int64 { return []*int64{&q.count, &q.bytes, &q.hardCount, &q.hardBytes} }

// setQuota changes the quota of a path and creates it if there is none. It refuses a quota
// above or below another one, because the servers count usage only once.
func setQuota(ctx context.Context, zc *zk.Client, path string, change func(*quota)) error {
	if _, ok, err := zc.Exists(ctx, path); err != nil || !ok {
		if err == nil {
			err = &zk.OpError{Op: "setquota", Path: path, Err: zk.ErrNoNode}
		}
		return err
	}
	at := quotaRoot + path
	old, st, err := zc.Get(ctx, at+quotaLimits)
	if err == nil {
		q := parseQuota(string(old))
		change(&q)
		_, err = zc.Set(ctx, at+quotaLimits, []byte(q.String()), st.Version)
		return err
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
	q := noQuota()
	change(&q)
	_, err = zc.Multi(ctx,
		zk.CreateOp(at+quotaLimits, []byte(q.String())),
		zk.CreateOp(at+quotaStats, []byte("count=0,bytes=0")))
	return err
}

// noOtherQuota fails if a path above or below has a quota.
func noOtherQuota(ctx context.Context, zc *zk.Client, path string) error {
	for at := path; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if _, ok, err := zc.Exists(ctx, quotaRoot+at+quotaLimits); err != nil || ok {
			if err == nil {
				err = fmt.Errorf("%s has a parent %s which has a quota", path, at)
			}
			return err
		}
	}
	err := walk(ctx, zc, quotaRoot+path, func(p string) error {
		if below, ok := strings.CutSuffix(p, quotaLimits); ok {
			return fmt.Errorf("%s has a child %s which has a quota", path, strings.TrimPrefix(below, quotaRoot))
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
				at := quotaRoot + args[0]
				old, st, err := zc.Get(ctx, at+quotaLimits)
				if isNoNode(err) {
					return noQuotaError(args[0])
				}
				if err != nil {
					return err
				}
				if drop == [4]bool{} {
					_, err = zc.Multi(ctx, zk.DeleteOp(at+quotaLimits, zk.AnyVersion), zk.DeleteOp(at+quotaStats, zk.AnyVersion))
					return err
				}
				q := parseQuota(string(old))
				for i, field := range q.fields() {
					if drop[i] {
						*field = -1
					}
				}
				_, err = zc.Set(ctx, at+quotaLimits, []byte(q.String()), st.Version)
				return err
			})
		},
	}
	for i, f := range quotaFlags {
		c.Flags().BoolVarP(&drop[i], f.name, f.short, false, "remove the "+f.usage)
	}
	return c
}
