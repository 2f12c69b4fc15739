package shell

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/wire"
	"bellwether/zk"
)

func newGetACL(a *app) *cobra.Command {
	var stat bool
	c := &cobra.Command{
		Use:     "getAcl PATH",
		Short:   "print a znode's access-control list",
		Example: "  bellwether getAcl -s /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				list, st, err := zc.GetACL(ctx, args[0])
				if err != nil {
					return err
				}
				if a.json() {
					return printJSON(a.out, struct {
						Path string    `json:"path"`
						ACL  []ACLJSON `json:"acl"`
						Stat *statJSON `json:"stat"`
					}{args[0], ACLsOf(list), statOf(st)})
				}
				for _, e := range list {
					fmt.Fprintf(a.out, "'%s,'%s\n: %s\n", e.ID.Scheme, e.ID.ID, permText(e.Perms))
				}
				if stat {
					printStat(a.out, st)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVarP(&stat, "stat", "s", false, "print the stat too")
	return c
}

func newSetACL(a *app) *cobra.Command {
	var (
		stat, recursive bool
		version         int32
	)
	c := &cobra.Command{
		Use:     "setAcl PATH ACL",
		Short:   "replace a znode's access-control list",
		Long:    "Replace a znode's access-control list. ACL is scheme:id:perms[,…] with perms of the letters cdrwa.",
		Example: "  bellwether setAcl /app world:anyone:r,digest:ann:hash=:cdrwa",
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := parseACL(args[1])
			if err != nil {
				return err
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				if recursive {
					return walk(ctx, zc, args[0], func(p string) error { return a.setACL(ctx, zc, p, list, version, stat) })
				}
				return a.setACL(ctx, zc, args[0], list, version, stat)
			})
		},
	}
	f := c.Flags()
	f.BoolVarP(&stat, "stat", "s", false, "print the new stat")
	f.BoolVarP(&recursive, "recursive", "R", false, "set the ACL of the whole subtree")
	f.Int32VarP(&version, "version", "v", zk.AnyVersion, "only if the ACL version is this; -1: any")
	return c
}

func (a *app) setACL(ctx context.Context, zc *zk.Client, path string, list []wire.ACL, version int32, stat bool) error {
	st, err := zc.SetACL(ctx, path, list, version)
	if err != nil || !stat && !a.json() {
		return err
	}
	return a.printPathStat(path, st)
}
