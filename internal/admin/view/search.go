package view

import (
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"time"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// Found is the result of a search for znodes by their names.
type Found struct {
	Text     string  `json:"text"`
	Below    string  `json:"below"`
	Nodes    []Child `json:"nodes"`
	Visited  int     `json:"visited"`  // znodes whose names were compared
	Complete bool    `json:"complete"` // no limit has ended the search
	Hidden   bool    `json:"hidden"`   // access-control lists have hidden a part of the tree
}

// Limits of a search.
const (
	FoundMax      = 200     // znodes that are found
	searchMax     = 500_000 // znodes whose names are compared
	searchTime    = 2 * time.Second
	searchTextMax = 1000 // bytes
)

// Search finds the znodes below a path whose names contain a text, in upper or lower case. It
// searches the tree level by level.
func (v *View) Search(ctx context.Context, who Who, below, text string) (*Found, error) {
	if err := checkPath(below); err != nil {
		return nil, err
	}
	if text == "" || len(text) > searchTextMax {
		return nil, &Error{Wrong, "a search needs a text of 1 to 1000 bytes", "text", "enter a part of a name"}
	}
	leave, err := v.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	f := &Found{Text: text, Below: below, Nodes: []Child{}, Complete: true}
	want, end := strings.ToLower(text), time.Now().Add(searchTime)
	t, r := v.srv.Tree(), who.reader()
	hidden, code := t.Walk(r, below, func(part []tree.Walked) bool {
		for i := range part {
			f.Visited++
			if name := part[i].Path[strings.LastIndexByte(part[i].Path, '/')+1:]; strings.Contains(strings.ToLower(name), want) {
				f.Nodes = append(f.Nodes, child(t, r, part[i].Path))
			}
			if len(f.Nodes) >= FoundMax {
				f.Complete = false
				return false
			}
		}
		if f.Visited >= searchMax || time.Now().After(end) || ctx.Err() != nil {
			f.Complete = false
		}
		return f.Complete
	})
	if code != wire.OK {
		return nil, treeError(code, below)
	}
	f.Hidden = hidden
	slices.SortFunc(f.Nodes, func(a, b Child) int { return strings.Compare(a.Path, b.Path) })
	return f, nil
}

// encodedNames yields the names in a piece of an encoded list.
func encodedNames(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(text) >= 4 {
			end := 4 + int(binary.BigEndian.Uint32(text))
			if end > len(text) || !yield(text[4:end]) {
				return
			}
			text = text[end:]
		}
	}
}
