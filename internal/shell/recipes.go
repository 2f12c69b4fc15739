package shell

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/claim"
	"bellwether/internal/survey"
	"bellwether/zk"
)

const recipesLong = `Show the recipes in use at PATH and below: elections, locks, semaphores, queues, double barriers, groups, services and
transactions, made by this program's library, Curator, kazoo or go-zookeeper. For each it shows who holds it, since when
and with which token, who waits behind whom, and from which address. It works with every ZooKeeper server.

The addresses come from the servers of --server and those in the ensemble's configuration. The command asks them with the
words cons and dump, which ZooKeeper answers if 4lw.commands.whitelist contains them. Otherwise it asks ZooKeeper's
AdminServer at http://SERVER:8080/commands/connections; --admin-port gives another port, or 0 to skip this.

It also lists, each with the command that removes it, znodes that are not deleted automatically (orphans), and cycles of
sessions that wait for each other at locks (deadlocks). The tree does not show which thread of a session a lock belongs
to. It does not distinguish kazoo's elections and Curator's LeaderSelector from locks. A simple barrier, a counter or a
value looks like any other znode. SINCE is the time when a bid was made, or, for a leader with a LEADER znode, when that
znode was made. docs/recipes.md lists the fields of -o json.

Exit status: 0 done, whatever was found, 1 failed, 2 usage, 4 no connection.`

// surveyor walks the tree and finds recipes.
type surveyor struct {
	*app
	depth, max int
	adminPort  int
	zc         *zk.Client

	read    int  // znodes read so far
	short   bool // something was not read because of max, depth or an ACL
	recipes []survey.Recipe
}

func newRecipes(a *app) *cobra.Command {
	s := &surveyor{app: a}
	c := &cobra.Command{
		Use:   "recipes [PATH]",
		Short: "show the recipes in use: who holds, who waits, orphans, deadlocks",
		Long:  recipesLong,
		Example: "  bellwether recipes\n  bellwether recipes --server zk1,zk2,zk3 /app -o json | jq '.deadlocks'\n" +
			"  bellwether recipes /app -o json | jq -r '.orphans[].clear'",
		Args: argCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := append(args, "/")[0]
			if s.depth < 0 || s.max < 1 || s.adminPort < 0 || s.adminPort > 65535 {
				return usagef("want --depth 0 or more, --max 1 or more, and --admin-port a port or 0")
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				s.zc = zc
				if err := s.survey(ctx, root); err != nil {
					return err
				}
				return s.report(ctx)
			})
		},
	}
	c.Flags().IntVar(&s.depth, "depth", 8, "how many levels below PATH to go")
	c.Flags().IntVar(&s.max, "max", 20_000, "how many znodes to read")
	c.Flags().IntVar(&s.adminPort, "admin-port", 8080, "port of ZooKeeper's AdminServer, which is asked if cons is not in the whitelist; 0: do not ask it")
	return c
}

// survey finds the recipes at root and below it, and at the paths next to root that belong
// to it.
func (s *surveyor) survey(ctx context.Context, root string) error {
	if err := s.zc.Sync(ctx, root); err != nil {
		return err
	}
	var beside []string
	if root != "/" {
		var err error
		if beside, _, err = s.zc.Children(ctx, path.Dir(root)); err != nil {
			return err
		}
	}
	if err := s.visit(ctx, root, beside, s.depth); err != nil {
		return err
	}
	for _, more := range survey.Suffixes {
		if slices.Contains(beside, path.Base(root)+more) {
			if err := s.visit(ctx, root+more, beside, 0); err != nil {
				return err
			}
		}
	}
	s.recipes = survey.Assemble(s.recipes)
	return nil
}

// visit examines one znode and then those below it.
func (s *surveyor) visit(ctx context.Context, at string, beside []string, depth int) error {
	names, _, err := s.zc.Children(ctx, at)
	switch {
	case errors.Is(err, zk.ErrNoNode) && len(s.recipes)+s.read > 0:
		return nil // the znode was deleted meanwhile
	case errors.Is(err, zk.ErrNoAuth):
		s.short = true
		return nil
	case err != nil:
		return err
	}
	slices.Sort(names)
	p := survey.Parent{Path: at, Beside: beside, Names: names}
	if p.Children, err = s.children(ctx, at, p.Reads()); err != nil {
		return err
	}
	if p.Counts() {
		if p.Data, _, err = s.zc.Get(ctx, at); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
			return err
		}
	}
	if recipe, ok := survey.Recognise(p); ok {
		s.recipes = append(s.recipes, recipe)
	}
	for _, c := range p.Children {
		below := claim.Join(at, c.Name)
		switch {
		case c.Stat.NumChildren == 0 || below == "/zookeeper":
		case depth == 0:
			s.short = true
		default:
			if err := s.visit(ctx, below, names, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// readsAtOnce is the number of parallel requests.
	readsAtOnce = 64
	// idMax is the largest data of a bid that is read, in bytes.
	idMax = 4 << 10
)

// children reads the named children, up to max znodes in total.
func (s *surveyor) children(ctx context.Context, at string, names []string) ([]survey.Child, error) {
	if room := s.max - s.read; len(names) > room {
		names, s.short = names[:room], true
	}
	s.read += len(names)
	var out []survey.Child
	for some := range slices.Chunk(names, readsAtOnce) {
		read := make([]survey.Child, len(some))
		errs := make(chan error, len(some)) // room for all: no goroutine blocks
		for i, name := range some {
			go func() {
				c, err := s.child(ctx, claim.Join(at, name))
				c.Name = name
				read[i] = c
				errs <- err
			}()
		}
		var failed error
		for range some {
			switch err := <-errs; {
			case errors.Is(err, zk.ErrNoAuth): // since ZooKeeper 3.9.5 an ACL hides the stat too
				s.short = true
			case failed == nil:
				failed = err
			}
		}
		if failed != nil {
			return nil, failed
		}
		for _, c := range read {
			if c.Stat.Czxid != 0 {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// child reads a znode's stat, and its data if that may be an id. A result without czxid
// means that the znode does not exist.
func (s *surveyor) child(ctx context.Context, path string) (survey.Child, error) {
	st, ok, err := s.zc.Exists(ctx, path)
	if err != nil || !ok {
		return survey.Child{}, err
	}
	c := survey.Child{Stat: st}
	if st.DataLength == 0 || st.DataLength > idMax || st.EphemeralOwner == 0 && !strings.HasSuffix(path, "/LEADER") {
		return c, nil
	}
	data, _, err := s.zc.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		err = nil // the id stays unknown
	}
	c.Data = data
	return c, err
}
