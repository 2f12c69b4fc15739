package view

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// Node is a znode with one page of its children.
type Node struct {
	Path     string    `json:"path"`
	Kind     string    `json:"kind"` // persistent, ephemeral, container or ttl
	TTLMS    int64     `json:"ttl_ms,omitempty"`
	Stat     Stat      `json:"stat"`
	Data     Data      `json:"data"`
	ACL      []ACL     `json:"acl"`
	Children []Child   `json:"children"`
	Next     string    `json:"next,omitempty"` // name after which the next page of children begins; empty: this is the last
	First    bool      `json:"first"`          // the page is the first
	At       time.Time `json:"at"`
}

// Stat is the stat of a znode.
type Stat struct {
	Czxid    string    `json:"czxid"`
	Mzxid    string    `json:"mzxid"`
	Pzxid    string    `json:"pzxid"`
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
	Version  int32     `json:"version"`
	Cversion int32     `json:"cversion"`
	Aversion int32     `json:"aversion"`
	Owner    string    `json:"owner,omitempty"` // session that owns the ephemeral znode
	Bytes    int32     `json:"bytes"`
	Children int32     `json:"children"`
}

// Data is the beginning of a znode's data, at most DataShown bytes.
type Data struct {
	Bytes int    `json:"bytes"` // size of all data
	Shown int    `json:"shown"` // bytes in Text or Hex
	Null  bool   `json:"null"`  // there is no data, which differs from empty data
	Text  string `json:"text,omitempty"`
	Hex   string `json:"hex,omitempty"` // set if the data is not UTF-8 text
}

// DataShown is how much of a znode's data is shown, in bytes.
const DataShown = 4 << 10

// ACL is one entry of an access-control list.
type ACL struct {
	Scheme      string `json:"scheme"`
	ID          string `json:"id"`
	Permissions string `json:"permissions"` // letters of cdrwa: create, delete, read, write, admin
}

// Child is a znode in a list.
type Child struct {
	Path     string `json:"path"`
	Name     string `json:"name"`
	Owner    string `json:"owner,omitempty"` // session that owns the ephemeral znode
	Bytes    int32  `json:"bytes"`
	Children int32  `json:"children"`
	Hidden   bool   `json:"hidden,omitempty"` // its access-control list hides the figures
}

// Limits of the pages of children.
const (
	ChildrenDefault = 100
	ChildrenMax     = 1000
)

// Listing selects a page of children, in the order of their names.
type Listing struct {
	Prefix string // only names that begin with it
	After  string // only names after this one
	Limit  int    // 0: ChildrenDefault
}

// Node returns a znode with a page of its children.
func (v *View) Node(ctx context.Context, who Who, path string, l Listing) (*Node, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	t, r := v.srv.Tree(), who.reader()
	var data wire.DataResponse
	if code := t.GetData(r, path, false, &data); code != wire.OK {
		return nil, treeError(code, path)
	}
	n := &Node{Path: path, Stat: statOf(&data.Stat), Data: dataOf(data.Data), Children: []Child{}, ACL: []ACL{}, First: l.After == "", At: time.Now().UTC()}
	if k, ok := t.KindOf(path); ok {
		n.Kind, n.TTLMS = k.Name, k.TTLMS
	}
	var acl wire.ACLResponse
	if code := t.GetACL(r, path, &acl); code == wire.OK {
		for _, e := range acl.ACL {
			n.ACL = append(n.ACL, ACL{e.ID.Scheme, e.ID.ID, permissions(e.Perms)})
		}
	}
	if data.Stat.NumChildren == 0 {
		return n, nil
	}
	names, err := v.children(ctx, r, path, l)
	if err != nil {
		return nil, err
	}
	if limit := limitOf(l.Limit); len(names) > limit {
		names = names[:limit]
		n.Next = names[limit-1]
	}
	for _, name := range names {
		n.Children = append(n.Children, child(t, r, join(path, name)))
	}
	return n, nil
}

func limitOf(limit int) int {
	if limit <= 0 {
		return ChildrenDefault
	}
	return min(limit, ChildrenMax)
}

// children returns the names of a page of children and, if there are more, one further name.
func (v *View) children(ctx context.Context, r *reader, path string, l Listing) ([]string, error) {
	t := v.srv.Tree()
	var list tree.Listing
	code, ready := t.ChildrenReady(r, path, false, &list)
	if !ready || list.Many != nil {
		leave, err := v.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	if !ready {
		kept := t.EncodeNames(path)
		code = t.Children(r, path, false, &list)
		clear(kept)
	}
	if code != wire.OK {
		return nil, treeError(code, path)
	}
	p := pager{Listing: l, limit: limitOf(l.Limit) + 1}
	if list.Many == nil {
		for _, name := range list.Children {
			p.add([]byte(name))
		}
		return p.names(), nil
	}
	for text := range list.Many.Texts {
		p.addEncoded(text)
	}
	return p.names(), nil
}

// pager finds the names of one page: the first limit names that the Listing selects, in sorted
// order. It takes all names, in any order, and keeps only a few of them.
type pager struct {
	Listing
	limit int
	kept  []string // fewer than 4*limit
	bound string   // if full is set: the greatest name that can still be on the page
	full  bool
}

// add takes one name.
func (p *pager) add(name []byte) {
	if string(name) <= p.After || !strings.HasPrefix(string(name[:min(len(name), len(p.Prefix))]), p.Prefix) || p.full && string(name) >= p.bound {
		return
	}
	if p.kept = append(p.kept, string(name)); len(p.kept) >= 4*p.limit {
		p.cut()
	}
}

// addEncoded takes names in the form of a reply: the length of each name comes before it.
func (p *pager) addEncoded(text []byte) {
	for name := range encodedNames(text) {
		p.add(name)
	}
}

// cut drops the names that are not on the page.
func (p *pager) cut() {
	slices.Sort(p.kept)
	if len(p.kept) >= p.limit {
		p.kept = p.kept[:p.limit]
		p.bound, p.full = p.kept[p.limit-1], true
	}
}

func (p *pager) names() []string {
	p.cut()
	return p.kept
}

// child describes one child.
func child(t *tree.Tree, r *reader, path string) Child {
	var st wire.StatResponse
	code := t.Exists(r, path, false, &st)
	c := Child{Path: path, Name: path[strings.LastIndexByte(path, '/')+1:], Bytes: st.Stat.DataLength, Children: st.Stat.NumChildren, Hidden: code != wire.OK}
	if owner := st.Stat.EphemeralOwner; owner != 0 {
		c.Owner = owner.String()
	}
	return c
}

// join returns the path of a child.
func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

func statOf(s *wire.Stat) Stat {
	o := Stat{
		Czxid: s.Czxid.String(), Mzxid: s.Mzxid.String(), Pzxid: s.Pzxid.String(), Created: at(s.Ctime), Modified: at(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion, Bytes: s.DataLength, Children: s.NumChildren,
	}
	if s.EphemeralOwner != 0 {
		o.Owner = s.EphemeralOwner.String()
	}
	return o
}

// dataOf returns the part of data that is shown.
func dataOf(b []byte) Data {
	d := Data{Bytes: len(b), Null: b == nil}
	cut := b[:min(len(b), DataShown)]
	for n := 0; len(cut) < len(b) && len(cut) > 0 && n < utf8.UTFMax; n++ { // do not cut in the middle of a character
		if c, size := utf8.DecodeLastRune(cut); c != utf8.RuneError || size != 1 {
			break
		}
		cut = cut[:len(cut)-1]
	}
	if utf8.Valid(cut) && len(cut) > 0 && !slices.Contains(cut, 0) {
		d.Text, d.Shown = string(cut), len(cut)
		return d
	}
	cut = b[:min(len(b), DataShown)]
	d.Hex, d.Shown = hex.EncodeToString(cut), len(cut)
	return d
}

// permissions returns permissions as letters.
func permissions(perms int32) string {
	var b strings.Builder
	for _, p := range []struct {
		bit    int32
		letter byte
	}{{wire.PermCreate, 'c'}, {wire.PermDelete, 'd'}, {wire.PermRead, 'r'}, {wire.PermWrite, 'w'}, {wire.PermAdmin, 'a'}} {
		if perms&p.bit != 0 {
			b.WriteByte(p.letter)
		}
	}
	return b.String()
}
