package shell

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

const recipesLong = `Show the recipes in use at PATH and below as what they are: elections, locks, semaphores, queues, double barriers and
groups, of this program's library, of Curator, kazoo and go-zookeeper: who holds, since when, with which token, who waits
behind whom. It works with every ZooKeeper server.

Where the servers of --server answer the words cons and dump (4lw.commands.whitelist), the addresses of clients are
shown too, and orphans found whose session is over.

Named besides, each with the command that clears it: znodes that will not go by themselves, and circles of sessions
that wait for each other. The tree does not tell apart the threads of one session, nor kazoo's elections, and those of
Curator's LeaderSelector, from locks. A simple barrier is a znode like any other. SINCE is when a bid was made, and of a
leader with a LEADER znode when that was.`

// surveyor walks over the tree and finds recipes.
type surveyor struct {
	*app
	depth, max int
	zc         *zk.Client

	read   int  // znodes so far
	short  bool // more was there than max or depth allows
	scenes []claim.Scene
}

func newRecipes(a *app) *cobra.Command {
	s := &surveyor{app: a}
	c := &cobra.Command{
		Use:     "recipes [PATH]",
		Short:   "show elections, locks, queues as such: who holds, who waits, orphans, deadlocks",
		Long:    recipesLong,
		Example: "  bellwether recipes\n  bellwether recipes --server zk1,zk2,zk3 /app -o json | jq '.deadlocks'",
		Args:    argCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := append(args, "/")[0]
			if s.depth < 0 || s.max < 1 {
				return usagef("--depth takes 0 or more, --max 1 or more")
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
	c.Flags().IntVar(&s.max, "max", 20_000, "how many znodes to look at")
	return c
}

// survey finds what stands at the root and below, and at the places beside it
// that belong to it.
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
	for _, more := range []string{".line", "-__lock__"} {
		if slices.Contains(beside, path.Base(root)+more) {
			if err := s.visit(ctx, root+more, beside, 0); err != nil {
				return err
			}
		}
	}
	s.scenes = claim.Assemble(s.scenes)
	return nil
}

// visit looks at one place and then at those below it.
func (s *surveyor) visit(ctx context.Context, at string, beside []string, depth int) error {
	names, _, err := s.zc.Children(ctx, at)
	switch {
	case errors.Is(err, zk.ErrNoNode) && len(s.scenes)+s.read > 0:
		return nil // gone since
	case errors.Is(err, zk.ErrNoAuth):
		s.short = true
		return nil
	case err != nil:
		return err
	}
	slices.Sort(names)
	p := claim.Place{Path: at, Beside: beside, Names: names}
	if p.Children, err = s.children(ctx, at, p.Reads()); err != nil {
		return err
	}
	if scene, ok := claim.Recognise(p); ok {
		s.scenes = append(s.scenes, scene)
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
	// readsAtOnce is how many znodes are asked for at a time.
	readsAtOnce = 64
	// idMax is the most data of a bid that is looked at, in bytes.
	idMax = 4 << 10
)

// children reads what Reads asks for, as far as max allows.
func (s *surveyor) children(ctx context.Context, at string, names []string) ([]claim.Child, error) {
	if room := s.max - s.read; len(names) > room {
		names, s.short = names[:room], true
	}
	s.read += len(names)
	var out []claim.Child
	for some := range slices.Chunk(names, readsAtOnce) {
		read := make([]claim.Child, len(some))
		errs := make(chan error, len(some)) // room for all: none waits
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
			failed = errors.Join(failed, <-errs)
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

// child reads a znode's stat, and its data where that may be an id. Without
// czxid it is gone.
func (s *surveyor) child(ctx context.Context, path string) (claim.Child, error) {
	st, ok, err := s.zc.Exists(ctx, path)
	if err != nil || !ok {
		return claim.Child{}, err
	}
	c := claim.Child{Stat: st}
	if st.DataLength == 0 || st.DataLength > idMax || st.EphemeralOwner == 0 && !strings.HasSuffix(path, "/LEADER") {
		return c, nil
	}
	data, _, err := s.zc.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		err = nil // its id is not known
	}
	c.Data = data
	return c, err
}

// recipeJSON is a recipe for programs.
type recipeJSON struct {
	Path    string       `json:"path"`
	Recipe  claim.Kind   `json:"recipe"`
	Items   int          `json:"items,omitempty"`
	Clients []clientJSON `json:"clients"`
}

type clientJSON struct {
	State   string   `json:"state"`
	ID      string   `json:"id,omitempty"`
	Bid     string   `json:"bid"`
	Naming  string   `json:"naming"`
	Token   string   `json:"token"`
	Since   string   `json:"since"`
	Session string   `json:"session"`
	Address string   `json:"address,omitempty"`
	Behind  []string `json:"behind,omitempty"`
	AnyOf   bool     `json:"any_of,omitempty"`
}

type orphanJSON struct {
	Path  string `json:"path"`
	Why   string `json:"why"`
	Clear string `json:"clear"`
}

type deadlockJSON struct {
	Circle []linkJSON `json:"circle"`
	Clear  string     `json:"clear"`
}

type linkJSON struct {
	Session string `json:"session"`
	ID      string `json:"id,omitempty"`
	Holds   string `json:"holds"`
	Waits   string `json:"waits"`
}

// surveyJSON is all that was found.
type surveyJSON struct {
	Recipes   []recipeJSON   `json:"recipes"`
	Orphans   []orphanJSON   `json:"orphans"`
	Deadlocks []deadlockJSON `json:"deadlocks"`
	Complete  bool           `json:"complete"` // false: --max, --depth or an ACL hid something
}

func (s *surveyor) report(ctx context.Context) error {
	addresses, known := s.clients(ctx)
	out := surveyJSON{Recipes: []recipeJSON{}, Orphans: []orphanJSON{}, Deadlocks: []deadlockJSON{}, Complete: !s.short}
	for _, sc := range s.scenes {
		r := recipeJSON{Path: sc.Path, Recipe: sc.Kind, Items: sc.Items, Clients: []clientJSON{}}
		for _, st := range sc.Stands {
			r.Clients = append(r.Clients, clientJSON{
				State: st.Role, ID: printable(st.ID), Bid: st.Path, Naming: st.Naming.String(), Token: st.Token.String(), Since: Instant(st.Since),
				Session: st.Session.String(), Address: addresses[st.Session], Behind: st.Behind, AnyOf: st.AnyOf,
			})
		}
		if len(sc.Stands)+sc.Items > 0 {
			out.Recipes = append(out.Recipes, r)
		}
		orphans := sc.Orphans
		if known[s.zc.State().Session] { // the servers tell all sessions
			orphans = append(orphans, s.still(ctx, sc.Missing(known))...)
		}
		for _, o := range orphans {
			out.Orphans = append(out.Orphans, orphanJSON{o.Path, o.Why, "bellwether kick " + quoted(o.Path)})
		}
	}
	for _, d := range claim.Deadlocks(s.scenes) {
		out.Deadlocks = append(out.Deadlocks, deadlockOf(d))
	}
	if s.json() {
		return printJSON(s.out, out)
	}
	return s.table(out)
}

// still are those that are there yet: a session may have ended, with its
// znodes, since they were read.
func (s *surveyor) still(ctx context.Context, orphans []claim.Orphan) []claim.Orphan {
	return slices.DeleteFunc(orphans, func(o claim.Orphan) bool {
		_, ok, err := s.zc.Exists(ctx, o.Path)
		return err != nil || !ok
	})
}

// deadlockOf names the circle; it is cleared by taking from the one who holds
// since the shortest time.
func deadlockOf(d []claim.Link) deadlockJSON {
	var out deadlockJSON
	last := d[0].Holds
	for _, l := range d {
		out.Circle = append(out.Circle, linkJSON{l.Session.String(), printable(l.Holds.ID), l.Holds.Path, l.Wait.Path})
		if l.Holds.Token > last.Token {
			last = l.Holds
		}
	}
	out.Clear = "bellwether kick " + quoted(last.Path)
	return out
}

// quoted is a word for a shell.
func quoted(s string) string {
	if strings.Trim(s, "/_-.:@%+=,0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// idShown is how much of an id is shown, in bytes.
const idShown = 64

// printable is an id as it can stand in a table.
func printable(id string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, id)
	if len(clean) > idShown {
		clean = strings.ToValidUTF8(clean[:idShown], "") + "…"
	}
	return clean
}

func (s *surveyor) table(all surveyJSON) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	if len(all.Recipes) > 0 {
		fmt.Fprintln(w, "PATH\tRECIPE\tSTATE\tWHO\tBEHIND\tTOKEN\tSINCE\tSESSION\tFROM\tNAMES\tZNODE")
	}
	for _, r := range all.Recipes {
		if r.Items > 0 {
			fmt.Fprintf(w, "%s\t%s\t%d items\n", r.Path, r.Recipe, r.Items)
		}
		who := map[string]string{}
		for _, c := range r.Clients {
			who[c.Bid] = c.ID
			if c.ID == "" {
				who[c.Bid] = c.Session
			}
		}
		for _, c := range r.Clients {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Path, r.Recipe, c.State, dash(c.ID), dash(behind(c, who)),
				c.Token, c.Since, c.Session, dash(c.Address), c.Naming, strings.TrimPrefix(strings.TrimPrefix(c.Bid, r.Path), "/"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range all.Orphans {
		fmt.Fprintf(s.out, "orphan: %s %s\n  clear it: %s\n", o.Path, o.Why, o.Clear)
	}
	for _, d := range all.Deadlocks {
		fmt.Fprintln(s.out, "deadlock: each waits for the next, unless they are threads that do not wait for each other")
		for _, l := range d.Circle {
			fmt.Fprintf(s.out, "  session %s %s holds %s and waits with %s\n", l.Session, dash(l.ID), l.Holds, l.Waits)
		}
		fmt.Fprintf(s.out, "  clear it: %s\n", d.Clear)
	}
	if !all.Complete {
		fmt.Fprintln(s.err, "bellwether: not all was looked at: name a PATH, or raise --max or --depth; what its ACL hides is not shown")
	}
	return nil
}

// behind tells whom a client waits for: the nearest, and how many before it.
func behind(c clientJSON, who map[string]string) string {
	switch n := len(c.Behind); {
	case n == 0:
		return ""
	case c.AnyOf:
		return fmt.Sprintf("any of %d", n)
	case n == 1:
		return who[c.Behind[0]]
	default:
		return fmt.Sprintf("%s +%d", who[c.Behind[n-1]], n-1)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// clients asks each server of --server who is connected from where, and for
// the sessions. A server that does not answer is left out.
func (s *surveyor) clients(ctx context.Context) (map[wire.SessionID]string, map[wire.SessionID]bool) {
	addresses, known := map[wire.SessionID]string{}, map[wire.SessionID]bool{}
	hosts, _, _ := strings.Cut(s.servers, "/")
	for h := range strings.SplitSeq(hosts, ",") {
		if text, err := word(ctx, withPort(h), "cons", s.timeout); err == nil {
			parseCons(text, addresses)
		}
		if text, err := word(ctx, withPort(h), "dump", s.timeout); err == nil {
			parseDump(text, known)
		}
	}
	return addresses, known
}
