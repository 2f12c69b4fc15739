package tree

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func newChild(key hashKey, name string) *node {
	n := &node{}
	n.write(name, nil)
	n.hash = key.name(name)
	return n
}

// checkChildren compares the children with a map.
func checkChildren(t testing.TB, k *childSet, key hashKey, want map[string]*node) {
	t.Helper()
	if k.len() != len(want) {
		t.Fatalf("%d children, want %d", k.len(), len(want))
	}
	for name, n := range want {
		if k.get(name, key.name(name)) != n {
			t.Fatalf("%q is not found", name)
		}
	}
	seen := map[*node]bool{}
	k.each(func(n *node) {
		if seen[n] || want[string(n.name())] != n {
			t.Fatalf("%q comes twice or is not there", n.name())
		}
		seen[n] = true
	})
	if len(seen) != len(want) {
		t.Fatalf("%d children are listed, want %d", len(seen), len(want))
	}
}

// TestChildSetGrowsAndShrinks: the set goes through all its forms: list, table and parts.
func TestChildSetGrowsAndShrinks(t *testing.T) {
	key := newHashKey(3)
	k := &childSet{}
	want := map[string]*node{}
	sizes := map[int]bool{1: true, 8: true, 9: true, 24: true, 25: true, divideAt: true, divideAt + 1: true, 20_000: true}
	for i := range 20_000 {
		name := fmt.Sprint("n", i)
		n := newChild(key, name)
		k.add(n)
		want[name] = n
		if sizes[len(want)] {
			checkChildren(t, k, key, want)
		}
	}
	if k.parts == nil {
		t.Error("the children do not divide")
	}
	for i := range 20_000 {
		name := fmt.Sprint("n", i)
		k.remove(want[name])
		delete(want, name)
		if sizes[len(want)] {
			checkChildren(t, k, key, want)
		}
	}
	checkChildren(t, k, key, want)
}

// TestChildSetAgainstMap: random names, some with equal hashes, are added and removed.
// The set contains the same as a map.
func TestChildSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := newHashKey(rapid.Uint64().Draw(t, "seed"))
		narrow := rapid.Uint32Range(0, 31).Draw(t, "shift")
		k, want := &childSet{}, map[string]*node{}
		hash := func(name string) uint32 { return key.name(name) >> narrow << narrow }
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 60), 0, 300).Draw(t, "names") {
			name := fmt.Sprint(i)
			if n := want[name]; n != nil {
				k.remove(n)
				delete(want, name)
				continue
			}
			n := newChild(key, name)
			n.hash = hash(name)
			k.add(n)
			want[name] = n
		}
		if k.len() != len(want) {
			t.Fatalf("%d children, want %d", k.len(), len(want))
		}
		for i := range 61 {
			name := fmt.Sprint(i)
			if k.get(name, hash(name)) != want[name] {
				t.Fatalf("%q: %v", name, want[name])
			}
		}
	})
}

// TestScanMissesNothing: a walk in the order of the hashes visits each child that remains
// exactly once, while others are added and removed and the table changes its form.
func TestScanMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := newHashKey(rapid.Uint64().Draw(t, "seed"))
		k, there := &childSet{}, map[string]*node{}
		staying := rapid.SampledFrom([]int{0, 3, 8, 40, 500, divideAt - 20, divideAt + 3000}).Draw(t, "staying")
		for i := range staying {
			n := newChild(key, fmt.Sprint("stay", i))
			k.add(n)
		}
		stay := k.len()
		seen := map[string]int{}
		var buf []*node
		next := uint64(0)
		for step := 0; next != hashEnd; step++ {
			for range rapid.IntRange(0, 60).Draw(t, "changes") {
				name := fmt.Sprint("go", rapid.IntRange(0, 200).Draw(t, "name"))
				if n := there[name]; n != nil {
					k.remove(n)
					delete(there, name)
				} else {
					there[name] = newChild(key, name)
					k.add(there[name])
				}
			}
			before := next
			if buf, next = k.scan(buf[:0], next, rapid.IntRange(1, 2000).Draw(t, "limit")); next <= before {
				t.Fatalf("the walk stands at %d", next)
			}
			for _, n := range buf {
				seen[string(n.name())]++
			}
		}
		found := 0
		for name, times := range seen {
			if name[0] == 's' {
				found++
				if times != 1 {
					t.Fatalf("%s is seen %d times", name, times)
				}
			}
		}
		if found != stay {
			t.Fatalf("%d of %d seen", found, stay)
		}
	})
}

// TestSipHash: the hash equals a value that other implementations compute for this key.
func TestSipHash(t *testing.T) {
	if got := (hashKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}).sum(""); got != 0xabac0158050fc4dc {
		t.Errorf("%#x", got)
	}
}

// TestHash: the same key gives the same hashes and another key gives others. Each byte of
// a name affects its hash.
func TestHash(t *testing.T) {
	a, b := newHashKey(1), newHashKey(2)
	seen := map[uint64]string{}
	for i := range 40 {
		text := make([]byte, i)
		for j := range i + 1 {
			if j < i {
				text[j] = 'x'
			}
			s := string(text)
			if again := newHashKey(1).sum(s); a.sum(s) != again || a.sum(s) == b.sum(s) {
				t.Fatalf("%q: %x %x %x", s, a.sum(s), again, b.sum(s))
			}
			if other, ok := seen[a.sum(s)]; ok && other != s {
				t.Fatalf("%q and %q collide", s, other)
			}
			seen[a.sum(s)] = s
		}
	}
}
