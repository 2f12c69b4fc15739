package claim

import (
	"slices"
	"testing"

	"bellwether/wire"
)

// TestParentsLookFirst checks that the children of the path are listed before anything is created, once, and that the parents of another recipe are
// refused.
func TestParentsLookFirst(t *testing.T) {
	for _, c := range []struct {
		list    Result
		refused bool
	}{
		{Result{Names: nil}, false},
		{Result{Err: wire.ErrNoAuth}, false},
		{Result{Names: []string{"leases", "locks"}}, true},
	} {
		var a Requester
		var refused error
		p := Parents{Root: "/r", Want: KindWork}
		create := func() []OpKind {
			p.Create(&a, func(err error) { refused = err }, MakeParents("/r/tasks"))
			var kinds []OpKind
			for _, o := range a.Ready().Request.Ops {
				kinds = append(kinds, o.Kind)
			}
			return kinds
		}
		a.Process(Moment{}, Attached{Session: 1})
		if got := create(); !slices.Equal(got, []OpKind{OpList}) {
			t.Fatalf("asks for %v first", got)
		}
		a.Process(Moment{}, Reply{N: 1, Results: []Result{c.list}})
		if (refused != nil) != c.refused {
			t.Fatalf("%+v: refused with %v", c.list, refused)
		}
		if refused != nil {
			continue
		}
		if got := create(); !slices.Equal(got, []OpKind{OpParents}) {
			t.Errorf("asks for %v then", got)
		}
		a.Process(Moment{}, Reply{N: 2, Results: []Result{{Err: wire.ErrNoAuth}}})
		if refused != wire.ErrNoAuth {
			t.Errorf("refused with %v", refused)
		}
	}
}
