package tree

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"bellwether/wire"
)

// encodedNames returns the names as a client decodes them.
func encodedNames(t interface{ Fatal(...any) }, n *Names) []string {
	out := wire.Encoder(nil)
	count := int32(n.Count)
	out.Int32(&count)
	b, bytes := out.Bytes(), 0
	for text := range n.Texts {
		b, bytes = append(b, text...), bytes+len(text)
	}
	var r wire.ChildrenResponse
	c := wire.Decoder(b)
	if r.Code(&c); c.Err() != nil || c.Left() != 0 || bytes != n.Bytes {
		t.Fatal(c.Err(), c.Left(), bytes, n.Bytes)
	}
	slices.Sort(r.Children)
	return r.Children
}

// TestListingOfManyFollowsChanges: a listing of many children always has exactly the
// names of the present children, although the names are encoded in advance, while the set
// of children grows into parts and shrinks again.
func TestListingOfManyFollowsChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := New(Options{Seed: rapid.Uint64().Draw(t, "seed")})
		parent := tree.root
		there := map[string]*node{}
		next := 0
		add := func(n int) {
			for range n {
				name := fmt.Sprintf("child-%d", next)
				next++
				kid := newNode(name, tree.key.name(name), nil)
				tree.attach(parent, kid, "/"+name)
				there[name] = kid
			}
		}
		remove := func(n int) {
			for name, kid := range there {
				if n--; n < 0 {
					break
				}
				tree.detach(kid, "/"+name)
				delete(there, name)
			}
		}
		add(rapid.SampledFrom([]int{manyChildren, manyChildren, divideAt - 1, divideAt}).Draw(t, "children"))
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			before := len(there)
			if rapid.Bool().Draw(t, "create") {
				add(rapid.SampledFrom([]int{1, 100, 1000}).Draw(t, "more"))
			} else {
				remove(rapid.SampledFrom([]int{1, 100, before / 2}).Draw(t, "fewer"))
			}
			var l Listing
			if _, ok := tree.ChildrenReady(&conn{}, "/", false, &l); ok == (len(there)+1 >= manyChildren) {
				t.Fatalf("%d children: ready is %v after a change", len(there), ok)
			}
			tree.EncodeNames("/")
			tree.Children(&conn{}, "/", false, &l)
			var got []string
			if l.Many != nil {
				got = encodedNames(t, l.Many)
			} else {
				got = slices.Sorted(slices.Values(l.Children))
			}
			want := []string{}
			for name := range there {
				want = append(want, name)
			}
			want = append(want, "zookeeper")
			if slices.Sort(want); !slices.Equal(got, want) || !slices.Equal(slices.Sorted(slices.Values(l.All())), want) {
				t.Fatalf("%d names, want %d", len(got), len(want))
			}
		}
	})
}

// TestListingIsEncodedOnce: readers of an unchanged znode share one encoding of its
// listing. A change of one child changes only its part of the encoding.
func TestListingIsEncodedOnce(t *testing.T) {
	tree := New(Options{Seed: 1})
	fill(t, tree, 3*divideAt, 3*divideAt)
	const path = "/directory-000000"
	var a, b, c Listing
	tree.Children(&conn{}, path, false, &a)
	if _, ok := tree.ChildrenReady(&conn{}, path, false, &b); !ok || a.Many != b.Many {
		t.Fatal("the second reader does not share the encoded names of the first")
	}
	if held := a.Many.Hold(); held < a.Many.Bytes {
		t.Errorf("%d bytes are held of %d", held, a.Many.Bytes)
	}
	if held := b.Many.Hold(); held != 0 {
		t.Errorf("the second reader holds %d bytes more", held)
	}
	kid := newNode("another", tree.key.name("another"), nil)
	tree.attach(tree.find(path), kid, path+"/another")
	tree.Children(&conn{}, path, false, &c)
	if c.Many == a.Many {
		t.Fatal("a change is not seen")
	}
	held := c.Many.Hold()
	if most := c.Many.Bytes / childParts * 4; held == 0 || held > most {
		t.Errorf("after one change %d bytes are new, want at most %d", held, most)
	}
	if freed := a.Many.Release() + b.Many.Release(); freed == 0 || freed > held*2 {
		t.Errorf("the release of the old names freed %d bytes, want about those of the changed part", freed)
	}
	if freed := c.Many.Release(); freed < c.Many.Bytes {
		t.Errorf("%d bytes are left", c.Many.Bytes-freed)
	}
}

// BenchmarkListing measures getChildren of 100,000 children: of an unchanged znode, and
// after a change of one child.
func BenchmarkListing(b *testing.B) {
	tree := New(Options{Seed: 1})
	fill(b, tree, 100_000, 100_000)
	const path = "/directory-000000"
	parent := tree.find(path)
	for name, change := range map[string]bool{"unchanged": false, "changed": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var l Listing
			for b.Loop() {
				if change {
					kid := newNode("another", tree.key.name("another"), nil)
					tree.attach(parent, kid, path+"/another")
					tree.detach(kid, path+"/another")
				}
				tree.Children(&conn{}, path, false, &l)
			}
		})
	}
}

// TestListingsWhileChildrenChange: a listing that is read while children are created and
// deleted shows the children of one moment. A writer creates children in order and
// deletes each some creates later, so a correct listing has no gaps. Readers encode in
// steps, and use what others have encoded.
func TestListingsWhileChildrenChange(t *testing.T) {
	for _, kept := range []int{manyChildren, divideAt - 1, 2 * divideAt} {
		t.Run(fmt.Sprint(kept, " children"), func(t *testing.T) {
			tree := New(Options{Seed: 1})
			name := func(i int) string { return fmt.Sprintf("%08d", i) }
			kids := map[int]*node{}
			add := func(i int) {
				kids[i] = newNode(name(i), tree.key.name(name(i)), nil)
				tree.attach(tree.root, kids[i], "/"+name(i))
			}
			for i := range kept {
				add(i)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := kept; i < kept+3000; i++ {
					tree.mu.Lock()
					add(i)
					tree.mu.Unlock()
					tree.mu.Lock()
					tree.detach(kids[i-kept], "/"+name(i-kept))
					tree.mu.Unlock()
				}
			}()
			var readers sync.WaitGroup
			for range 3 {
				readers.Go(func() {
					for last := false; !last; {
						select {
						case <-done:
							last = true
						default:
						}
						var l Listing
						if _, ok := tree.ChildrenReady(&conn{}, "/", false, &l); !ok {
							ready := tree.EncodeNames("/")
							tree.Children(&conn{}, "/", false, &l)
							runtime.KeepAlive(ready)
						}
						got := encodedNames(t, l.Many)
						first, err := strconv.Atoi(got[0])
						if n := len(got) - 1; err != nil || n != kept && n != kept+1 || n+1 != int(l.Stat.NumChildren) {
							t.Errorf("%d names, first %s, %d children", n, got[0], l.Stat.NumChildren)
							return
						}
						for i, text := range got[:len(got)-1] { // the last is zookeeper
							if text != name(first+i) {
								t.Errorf("name %d is %s, want %s", i, text, name(first+i))
								return
							}
						}
					}
				})
			}
			readers.Wait()
			<-done
		})
	}
}
