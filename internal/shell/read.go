package shell

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"bellwether/wire"
	"bellwether/zk"
)

func newGet(a *app) *cobra.Command {
	var stat, watch, b64, hexa bool
	c := &cobra.Command{
		Use:   "get PATH",
		Short: "print a znode's data",
		Long: "Print a znode's data, and nothing else, to standard output; null data prints as null. At a terminal, control\n" +
			"characters are printed as ?; -b and -x show every byte.\n" +
			"With -w wait for the next change or deletion and print it as a second line.",
		Example: "  bellwether get /app/config\n  bellwether get -s /app/config -o json",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				data, st, w, err := getMaybeWatch(ctx, zc, args[0], a.wantsWatch(watch, dataWatch, args[0]))
				if err != nil {
					return err
				}
				switch {
				case a.json():
					err = printJSON(a.out, struct {
						Path string `json:"path"`
						DataJSON
						Stat *statJSON `json:"stat"`
					}{args[0], DataOf(data), statOf(st)})
				case b64:
					fmt.Fprintln(a.out, base64.StdEncoding.EncodeToString(data))
				case hexa:
					fmt.Fprint(a.out, hex.Dump(data))
				case data == nil:
					fmt.Fprintln(a.out, "null")
				default:
					fmt.Fprintf(a.out, "%s\n", a.shown(data))
				}
				if stat && !a.json() {
					printStat(a.out, st)
				}
				return a.waitEvent(ctx, dataWatch, args[0], w, err)
			})
		},
	}
	f := c.Flags()
	f.BoolVarP(&stat, "stat", "s", false, "print the stat too")
	f.BoolVarP(&watch, "watch", "w", false, a.watchUsage())
	f.BoolVarP(&b64, "base64", "b", false, "print the data in base64")
	f.BoolVarP(&hexa, "hex", "x", false, "print a hex dump")
	c.MarkFlagsMutuallyExclusive("base64", "hex")
	return c
}

func getMaybeWatch(ctx context.Context, zc *zk.Client, path string, watch bool) ([]byte, wire.Stat, *zk.Watch, error) {
	if watch {
		return zc.GetW(ctx, path)
	}
	data, st, err := zc.Get(ctx, path)
	return data, st, nil, err
}

// shown returns data or a name as it is printed: unchanged, but at a terminal without the characters that could
// change the terminal or the direction of the text.
func (a *app) shown(data []byte) []byte {
	if !isTerminal(a.out) {
		return data
	}
	return bytes.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, data)
}

// watchUsage is the help of the flag -w.
func (a *app) watchUsage() string {
	if a.shell != nil {
		return "print the next event when it happens"
	}
	return "wait for the next event and print it"
}

// wantsWatch reports whether a command with the flag -w sets a watch. In the interactive shell it
// sets none if there is one already.
func (a *app) wantsWatch(flag bool, kind watchKind, path string) bool {
	return flag && (a.shell == nil || !a.shell.events.watches(kind, path))
}

// waitEvent waits for the watch w, if there is one, and prints its event. The interactive shell
// does not wait, but prints the event when it happens.
func (a *app) waitEvent(ctx context.Context, kind watchKind, path string, w *zk.Watch, err error) error {
	if w == nil || err != nil {
		return err
	}
	if a.shell != nil {
		a.shell.events.add(kind, path, w)
		return nil
	}
	e, err := w.Wait(ctx)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.out, struct {
			Event string `json:"event"`
			Path  string `json:"path"`
		}{e.Type.String(), e.Path})
	}
	_, err = fmt.Fprintf(a.out, "%v %s\n", e.Type, e.Path)
	return err
}

func newStat(a *app) *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:     "stat PATH",
		Example: "  bellwether stat /app\n  bellwether stat -w /app/ready",
		Short:   "print a znode's stat",
		Long:    "Print a znode's stat. With -w wait for the next creation, change or deletion; the znode need not exist then.",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				st, ok, w, err := existsMaybeWatch(ctx, zc, args[0], a.wantsWatch(watch, dataWatch, args[0]))
				if err != nil {
					return err
				}
				if !ok && (!watch || a.shell != nil) {
					err = &zk.OpError{Op: "exists", Path: args[0], Err: zk.ErrNoNode}
				}
				if ok {
					err = a.printPathStat(args[0], st)
				}
				if a.shell != nil { // the watch stays if there is no znode
					return errors.Join(a.waitEvent(ctx, dataWatch, args[0], w, nil), err)
				}
				return a.waitEvent(ctx, dataWatch, args[0], w, err)
			})
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, a.watchUsage())
	return c
}

func existsMaybeWatch(ctx context.Context, zc *zk.Client, path string, watch bool) (wire.Stat, bool, *zk.Watch, error) {
	if watch {
		return zc.ExistsW(ctx, path)
	}
	st, ok, err := zc.Exists(ctx, path)
	return st, ok, nil, err
}

func (a *app) printPathStat(path string, st wire.Stat) error {
	if a.json() {
		return printJSON(a.out, struct {
			Path string    `json:"path"`
			Stat *statJSON `json:"stat"`
		}{path, statOf(st)})
	}
	printStat(a.out, st)
	return nil
}

func newLs(a *app) *cobra.Command {
	var stat, watch, recursive bool
	c := &cobra.Command{
		Use:     "ls [PATH]",
		Example: "  bellwether ls -R /app\n  bellwether ls -o json /app | jq -r .children[]",
		Short:   "list a znode's children",
		Long:    "List a znode's children, sorted; -R lists the whole subtree, one path per line.",
		Args:    argCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/"
			if len(args) > 0 {
				path = args[0]
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				if recursive {
					return walk(ctx, zc, path, func(p string) error { return a.printPath(p) })
				}
				names, st, w, err := childrenMaybeWatch(ctx, zc, path, a.wantsWatch(watch, childWatch, path))
				if err != nil {
					return err
				}
				slices.Sort(names)
				if a.json() {
					err = printJSON(a.out, struct {
						Path     string    `json:"path"`
						Children []string  `json:"children"`
						Stat     *statJSON `json:"stat"`
					}{path, names, statOf(st)})
				} else {
					fmt.Fprintf(a.out, "[%s]\n", a.shown([]byte(strings.Join(names, ", "))))
				}
				if stat && !a.json() {
					printStat(a.out, st)
				}
				return a.waitEvent(ctx, childWatch, path, w, err)
			})
		},
	}
	f := c.Flags()
	f.BoolVarP(&stat, "stat", "s", false, "print the stat too")
	f.BoolVarP(&watch, "watch", "w", false, a.watchUsage())
	f.BoolVarP(&recursive, "recursive", "R", false, "list the whole subtree")
	c.MarkFlagsMutuallyExclusive("recursive", "watch")
	c.MarkFlagsMutuallyExclusive("recursive", "stat")
	return c
}

func childrenMaybeWatch(ctx context.Context, zc *zk.Client, path string, watch bool) ([]string, wire.Stat, *zk.Watch, error) {
	if watch {
		return zc.ChildrenW(ctx, path)
	}
	names, st, err := zc.Children(ctx, path)
	return names, st, nil, err
}

func (a *app) printPath(path string) error {
	return a.print(struct {
		Path string `json:"path"`
	}{path}, string(a.shown([]byte(path))))
}

// walk visits a subtree in the order of ZooKeeper's CLI: the sorted children of a znode before their children. It skips
// znodes that are deleted meanwhile; top must exist. If access to a part of the subtree is denied, walk visits the rest
// and then returns an error that names these znodes.
func walk(ctx context.Context, zc *zk.Client, top string, visit func(path string) error) error {
	names, _, err := zc.Children(ctx, top)
	if err != nil {
		return err
	}
	if err := visit(top); err != nil {
		return err
	}
	w := walker{zc: zc, visit: visit}
	if err := w.below(ctx, top, names); err != nil {
		return err
	}
	return errors.Join(w.denied...)
}

// walker is the state of walk.
type walker struct {
	zc     *zk.Client
	visit  func(path string) error
	denied []error // the errors of znodes to which access is denied
}

// below visits the children of a znode and everything below them.
func (w *walker) below(ctx context.Context, top string, names []string) error {
	slices.Sort(names)
	for _, n := range names {
		if err := w.visit(join(top, n)); !w.goesOn(err) {
			return err
		}
	}
	for _, n := range names {
		children, _, err := w.zc.Children(ctx, join(top, n))
		if err == nil {
			err = w.below(ctx, join(top, n), children)
		}
		if !w.goesOn(err) {
			return err
		}
	}
	return nil
}

// goesOn reports whether the walk continues after an error.
func (w *walker) goesOn(err error) bool {
	if errors.Is(err, zk.ErrNoAuth) {
		w.denied = append(w.denied, cliError(err))
		return true
	}
	return err == nil || isNoNode(err)
}

func join(parent, name string) string { return strings.TrimSuffix(parent, "/") + "/" + name }

func newCount(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "getAllChildrenNumber PATH",
		Short:   "count all descendants of a znode",
		Long:    "Count all descendants of a znode, without the znode itself.",
		Example: "  bellwether getAllChildrenNumber /app",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				n, err := zc.CountDescendants(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(struct {
					Path  string `json:"path"`
					Count int    `json:"count"`
				}{args[0], n}, strconv.Itoa(n))
			})
		},
	}
}

func newSync(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sync PATH",
		Short: "wait until the connected server has caught up with the leader",
		Long: "Wait until the connected server has applied everything that the leader had committed when it received the request.\n" +
			"PATH exists for compatibility; the znode need not exist.",
		Example: "  bellwether sync / && bellwether get /app/config",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				if err := zc.Sync(ctx, args[0]); err != nil {
					return err
				}
				return a.print(struct {
					Synced bool `json:"synced"`
				}{true}, "Sync is OK")
			})
		},
	}
}

func newWhoAmI(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		Short:   "show the identities of the connection",
		Example: "  bellwether whoami --auth digest:ann:secret",
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				list, err := zc.WhoAmI(ctx)
				if err != nil {
					return err
				}
				if a.json() {
					type identity struct {
						Scheme string `json:"scheme"`
						User   string `json:"user"`
					}
					out := []identity{}
					for _, i := range list {
						out = append(out, identity{i.Scheme, i.User})
					}
					return printJSON(a.out, out)
				}
				fmt.Fprintln(a.out, "Auth scheme: User")
				for _, i := range list {
					fmt.Fprintf(a.out, "%s: %s\n", i.Scheme, i.User)
				}
				return nil
			})
		},
	}
}
