package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"bellwether/internal/claim"
	"bellwether/internal/fourletter"
	"bellwether/internal/survey"
	"bellwether/wire"
)

// recipeJSON is a recipe in a form for programs.
type recipeJSON struct {
	Path    string       `json:"path"`
	Recipe  claim.Kind   `json:"recipe"`
	Items   int          `json:"items,omitempty"`
	Leases  int          `json:"leases,omitempty"`
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

// surveyJSON is the whole result of a survey.
type surveyJSON struct {
	Recipes   []recipeJSON   `json:"recipes"`
	Orphans   []orphanJSON   `json:"orphans"`
	Deadlocks []deadlockJSON `json:"deadlocks"`
	Complete  bool           `json:"complete"` // false: --max, --depth or an ACL hid something
}

func (s *surveyor) report(ctx context.Context) error {
	addresses, known := s.clients(ctx)
	if !known[s.zc.State().Session] { // the servers do not list all sessions, so a missing session proves nothing
		known = nil
	}
	out := surveyJSON{Recipes: []recipeJSON{}, Orphans: []orphanJSON{}, Deadlocks: []deadlockJSON{}, Complete: !s.short}
	for _, sc := range s.recipes {
		if len(sc.Participants)+sc.Items > 0 {
			out.Recipes = append(out.Recipes, recipeOf(sc, addresses))
		}
		orphans := sc.Orphans
		if known != nil {
			orphans = slices.Concat(orphans, sc.Missing(known))
		}
		for _, o := range orphans {
			if is, err := s.orphaned(ctx, o); err != nil {
				return err
			} else if is {
				out.Orphans = append(out.Orphans, orphanJSON{o.Path, o.Why, s.clear(o)})
			}
		}
	}
	for _, d := range survey.Deadlocks(s.recipes) {
		if is, err := s.locked(ctx, d); err != nil {
			return err
		} else if is {
			out.Deadlocks = append(out.Deadlocks, s.deadlockOf(d))
		}
	}
	if n := addressless(out.Recipes); n > 0 {
		fmt.Fprintf(s.err, "bellwether: the address of %s is unknown: name all servers in --server, and allow cons and dump in 4lw.commands.whitelist or correct --admin-port\n", Count(n, "client"))
	}
	if s.json() {
		return printJSON(s.out, out)
	}
	return s.table(out)
}

// addressless counts the clients whose address no server has reported.
func addressless(recipes []recipeJSON) int {
	sessions := map[string]bool{}
	for _, r := range recipes {
		for _, c := range r.Clients {
			if c.Address == "" {
				sessions[c.Session] = true
			}
		}
	}
	return len(sessions)
}

// recipeOf returns a recipe in a form for programs.
func recipeOf(sc survey.Recipe, addresses map[wire.SessionID]string) recipeJSON {
	r := recipeJSON{Path: sc.Path, Recipe: sc.Kind, Items: sc.Items, Leases: sc.Leases, Clients: []clientJSON{}}
	for _, st := range sc.Participants {
		r.Clients = append(r.Clients, clientJSON{
			State: st.Role, ID: printable(st.ID), Bid: st.Path, Naming: st.Naming.String(), Token: st.Token.String(), Since: Instant(st.Since),
			Session: st.Session.String(), Address: addresses[st.Session], Behind: st.Behind, AnyOf: st.AnyOf,
		})
	}
	return r
}

// orphaned checks an orphan again, because the survey did not read the whole tree at one
// moment.
func (s *surveyor) orphaned(ctx context.Context, o survey.Orphan) (bool, error) {
	is, err := s.stands(ctx, o.Path, o.Token)
	if !is || err != nil || o.Missing == "" {
		return is, err
	}
	_, there, err := s.zc.Exists(ctx, o.Missing)
	return !there, err
}

// locked checks a cycle again. If all its znodes existed before and exist now, they all
// existed at one moment. Places in a line never change, so the cycle is a deadlock.
func (s *surveyor) locked(ctx context.Context, circle []survey.Link) (bool, error) {
	for _, l := range circle {
		for _, st := range []survey.Participant{l.Holds, l.Wait} {
			if is, err := s.stands(ctx, st.Path, st.Token); !is || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// stands reports whether the znode at path exists and is the one with this czxid.
func (s *surveyor) stands(ctx context.Context, path string, czxid wire.Zxid) (bool, error) {
	st, ok, err := s.zc.Exists(ctx, path)
	return ok && st.Czxid == czxid, err
}

// clear returns the command that removes an orphan.
func (s *surveyor) clear(o survey.Orphan) string {
	if o.Plain {
		return s.command("delete", o.Path)
	}
	return s.command("kick", o.Path)
}

// command returns a command line that removes a znode, with this command's --server but
// without credentials.
func (s *surveyor) command(name, path string) string {
	if s.named {
		name += " --server " + quoted(s.servers)
	}
	return "bellwether " + name + " " + quoted(path)
}

// deadlockOf describes a cycle. To resolve it, the newest holder loses its claim.
func (s *surveyor) deadlockOf(d []survey.Link) deadlockJSON {
	var out deadlockJSON
	last := d[0].Holds
	for _, l := range d {
		out.Circle = append(out.Circle, linkJSON{l.Session.String(), printable(l.Holds.ID), l.Holds.Path, l.Wait.Path})
		if l.Holds.Token > last.Token {
			last = l.Holds
		}
	}
	out.Clear = s.command("kick", last.Path)
	return out
}

// quoted returns s as one word for a shell.
func quoted(s string) string {
	if strings.Trim(s, "/_-.:@%+=,0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// idShown is how much of an id is shown, in bytes.
const idShown = 64

// printable returns an id in a form that a table can show.
func printable(id string) string { return fourletter.Clip(fourletter.Clean(id), idShown) }

func (s *surveyor) table(all surveyJSON) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	if len(all.Recipes) > 0 {
		fmt.Fprintln(w, "PATH\tRECIPE\tSTATE\tWHO\tBEHIND\tTOKEN\tSINCE\tSESSION\tFROM\tNAMES\tZNODE")
	}
	for _, r := range all.Recipes {
		if r.Items > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s%s\n", r.Path, r.Recipe, Count(r.Items, "item"), strings.Repeat("\t-", 8))
		}
		if r.Leases > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s%s\n", r.Path, r.Recipe, Count(r.Leases, "lease"), strings.Repeat("\t-", 8))
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
		fmt.Fprintln(s.out, "deadlock: each session waits for the next one, unless the threads of one session are independent")
		for _, l := range d.Circle {
			fmt.Fprintf(s.out, "  session %s %s holds %s and waits with %s\n", l.Session, dash(l.ID), l.Holds, l.Waits)
		}
		fmt.Fprintf(s.out, "  clear it: %s\n", d.Clear)
	}
	if !all.Complete {
		fmt.Fprintln(s.err, "bellwether: the result is incomplete: name a PATH, or raise --max or --depth; znodes that an ACL hides are not shown")
	}
	return nil
}

// behind describes for whom a client waits: it names the client right before it, and says
// how many others are before that client.
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
