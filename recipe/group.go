package recipe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// GroupNaming is how a group names its members. It decides which other libraries see them.
type GroupNaming int

// The namings.
const (
	// MemberNames: a member's znode is named <id>, as in Curator's GroupMember. The
	// member chooses the data.
	MemberNames GroupNaming = iota
	// PartyNames: a member's znode is named <32 hex digits>__party__ and its data is the
	// id, as in kazoo's Party.
	PartyNames
	// ShallowNames: a member's znode is named <32 hex digits>-<id>, as in kazoo's
	// ShallowParty.
	ShallowNames
)

// partySuffix marks the members of kazoo's Party.
const partySuffix = "__party__"

// GroupOptions are the settings of a Group. A nil pointer means all defaults.
type GroupOptions struct {
	Naming GroupNaming
	ACL    zk.ACLs // given to each znode that is created; by default everybody may do everything
	// Predecessors and Wait are described at RegistrationOptions. Under the namings of
	// kazoo no two members have the same path, so they have no effect.
	Predecessors []zk.SessionID
	Wait         bool

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Group is a set of members, each an ephemeral child of one znode.
type Group struct {
	c      *zk.Client
	parent string
	opt    GroupOptions
}

// Member is one member of a Group.
type Member struct {
	ID      string
	Data    []byte
	Session zk.SessionID
	Token   zk.Zxid // the czxid of its znode
}

// NewGroup prepares a group at parent, which Join creates if it is missing. The caller
// still owns the client.
func NewGroup(c *zk.Client, parent string, o *GroupOptions) (*Group, error) {
	g := &Group{c: c, parent: parent, opt: optionsOr(o)}
	return g, checkClient("group", c, parent)
}

// Join makes the client a member with this id until the returned Registration is closed, in
// later sessions too. With PartyNames the data of a member is its id, and data is ignored.
func (g *Group) Join(ctx context.Context, id string, data []byte) (*Registration, error) {
	name := id
	if data == nil {
		data = []byte{} // Curator's GroupMember fails on a member without data
	}
	switch g.opt.Naming {
	case PartyNames:
		name, data = nonce()+partySuffix, []byte(id)
	case ShallowNames:
		name = nonce() + "-" + id
	}
	if err := checkName("group "+g.parent, name); err != nil {
		return nil, err
	}
	return Register(ctx, g.c, claim.Join(g.parent, name), data,
		&RegistrationOptions{
			ACL: g.opt.ACL, Predecessors: g.opt.Predecessors, Wait: g.opt.Wait, Logger: g.opt.Logger, Observer: g.opt.Observer})
}

// nonce returns 32 random hex digits, which are unique in practice.
func nonce() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Members returns the present members in the order of their ids.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	names, _, err := g.c.Children(ctx, g.parent)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	var nodes []Node
	for some := range slices.Chunk(names, readsMax) {
		ops := make([]zk.Op, len(some))
		for i, name := range some {
			ops[i] = zk.GetOp(claim.Join(g.parent, name))
		}
		res, err := g.c.MultiRead(ctx, ops...)
		if err != nil {
			return nil, err
		}
		for i, r := range res {
			if r.Err == nil {
				nodes = append(nodes, Node{Path: claim.Join(g.parent, some[i]), Data: r.Data, Stat: r.Stat})
			}
		}
	}
	return g.members(nodes)
}

// Watch yields the members, and yields them again after each change, until the context ends. It may
// merge several changes into one. A change costs a watcher one event and, if a member has
// joined, one read. The second value is the error that ends the iteration, as for
// Cache.Events.
func (g *Group) Watch(ctx context.Context) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		k, err := OpenCache(ctx, g.c, g.parent, &CacheOptions{ChildrenOnly: true, Logger: g.opt.Logger, Observer: g.opt.Observer})
		if err != nil {
			yield(nil, err)
			return
		}
		defer k.Close()
		news := true // the first list is always yielded
		for events, err := range k.batches(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			news = news || slices.ContainsFunc(events, func(e CacheEvent) bool {
				return e.Type != CacheCurrent && e.Node.Path != g.parent
			})
			if !news {
				continue
			}
			in, err := g.members(slices.Collect(k.All()))
			if !yield(in, err) || err != nil {
				return
			}
			news = false
		}
	}
}

// members returns those of the znodes that are members according to the naming. If the znodes are the bids
// of an election or a lock, the error is an *OtherRecipeError.
func (g *Group) members(nodes []Node) ([]Member, error) {
	out := []Member{}
	var names []string
	for _, n := range nodes {
		if n.Path == g.parent || n.Stat.EphemeralOwner == 0 {
			continue
		}
		names = append(names, path.Base(n.Path))
		if id, ok := g.memberID(n); ok {
			out = append(out, Member{ID: id, Data: n.Data, Session: n.Stat.EphemeralOwner, Token: n.Stat.Czxid})
		}
	}
	slices.SortFunc(out, func(a, b Member) int {
		if c := strings.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		return int(min(max(a.Token-b.Token, -1), 1))
	})
	if err := claim.OtherThanGroup(g.parent, names); err != nil {
		return nil, err
	}
	return out, nil
}

func (g *Group) memberID(n Node) (string, bool) {
	name := path.Base(n.Path)
	switch g.opt.Naming {
	case PartyNames:
		return string(n.Data), strings.HasSuffix(name, partySuffix)
	case ShallowNames:
		_, id, ok := strings.Cut(name, "-")
		return id, ok
	}
	return name, true
}
