package tree

import (
	"strings"
	"sync"

	"bellwether/internal/quota"
	"bellwether/wire"
)

// Tree is the replicated state of one server. The package comment says which goroutine
// may call what.
type Tree struct {
	o   Options
	key hashKey

	// mu guards everything down to watches. Only the goroutine that prepares and applies
	// changes it, so that goroutine may read without the lock.
	mu         sync.RWMutex
	root       *node
	quotas     *node // /zookeeper/quota, nil where there is none
	acls       aclTable
	sessions   map[wire.SessionID]*session
	live       int // sessions that are open
	containers nodeList
	ttls       nodeList
	nodes      int64 // without the root
	ephemerals int64
	bytes      int64 // bytes of paths and data
	last       wire.Zxid
	digest     uint64
	digests    digestLog

	watches watches

	// Only the goroutine that prepares and applies uses the fields below.
	pend         pending
	observations []Observation
	scratch      []byte
	onYield      func()
	unanswered   bool // no client waits for replies to the transactions being applied
}

// yieldEvery is the number of znodes or operations after which long work yields: about a
// millisecond's work.
const yieldEvery = 1024

// OnYield sets f to be called every few milliseconds while Prepare or Apply works on one
// long request or transaction, so that the caller can do urgent work. f must not use the
// tree, which may be locked.
func (t *Tree) OnYield(f func()) { t.onYield = f }

func (t *Tree) yield() {
	if t.onYield != nil {
		t.onYield()
	}
}

// mayYield calls the function of OnYield once in yieldEvery calls; i counts the calls
// from 0. It does not yield at 0.
func (t *Tree) mayYield(i int) {
	if i%yieldEvery == yieldEvery-1 {
		t.yield()
	}
}

// New returns the tree of an empty server: /, /zookeeper, /zookeeper/quota
// and /zookeeper/config, at zxid 0.
func New(o Options) *Tree {
	t := &Tree{o: o, key: newHashKey(o.Seed)}
	t.watches.init(t.key)
	t.reset()
	t.builtIn()
	return t
}

// reset removes everything but the root. Watches stay.
func (t *Tree) reset() {
	t.root = &node{meta: 0}
	t.quotas = nil
	t.acls = newACLTable()
	t.sessions = map[wire.SessionID]*session{}
	t.live = 0
	t.containers, t.ttls = nil, nil
	t.nodes, t.ephemerals = 0, 0
	t.bytes = int64(len("/"))
	t.last = 0
	t.digests = digestLog{}
	t.pend.clear()
	t.root.crc = t.crcOf("/", nil)
	t.digest = t.sum(t.root)
}

// builtIn creates the built-in znodes that are missing.
func (t *Tree) builtIn() {
	for _, path := range []string{zookeeperPath, quota.Root, configPath} {
		if t.find(path) != nil {
			continue
		}
		parent, name, _ := splitPath(path)
		n := newNode(name, t.key.name(name), []byte{})
		if path == configPath {
			n.aversion = -1
			n.acl = t.acls.place(wire.ReadACL())
			t.acls.use(n.acl)
		}
		t.attach(t.find(parent), n, path)
	}
}

// find returns the znode of a path, looked up verbatim; "" is the root. It returns nil if
// there is none.
func (t *Tree) find(path string) *node {
	if len(path) < 2 {
		if path == "" || path == "/" {
			return t.root
		}
		return nil
	}
	if path[0] != '/' {
		return nil
	}
	n := t.root
	for rest := path[1:]; ; {
		name, more, found := strings.Cut(rest, "/")
		if name == "" {
			return nil
		}
		if n = n.children.get(name, t.key.name(name)); n == nil || !found {
			return n
		}
		rest = more
	}
}

// attach adds a znode to a parent that has no child of that name, and counts it in all
// totals. The name with its hash, the data, the stat and the ACL of the znode are set already.
func (t *Tree) attach(parent, n *node, path string) {
	n.parent = parent
	n.crc = t.crcOf(path, n.text[n.nameLen():])
	if parent.meta&flagOutside != 0 || outsideDigest(path) {
		n.meta |= flagOutside
	}
	if parent.children == nil {
		parent.children = new(childSet)
	}
	parent.children.add(n)
	if path == quota.Root {
		t.quotas = n
	}
	t.nodes++
	t.bytes += int64(len(path) + n.dataLen())
	t.digest += t.sum(n)
	t.listAdd(n)
	t.account(path, 1, int64(n.dataLen()))
}

// listAdd adds a znode to the list of its owner.
func (t *Tree) listAdd(n *node) {
	switch k, _ := t.o.kindOf(n.owner); k {
	case kindContainer:
		t.containers.add(n)
	case kindTTL:
		t.ttls.add(n)
	case kindEphemeral:
		t.ephemerals++
		t.owner(wire.SessionID(n.owner)).owned.add(n)
	}
}

// detach removes a znode and everything below it. A znode that is deleted has children
// only if the log is replayed over a fuzzy snapshot, which may contain znodes of later
// transactions.
func (t *Tree) detach(n *node, path string) {
	if n.children != nil {
		var below []*node
		n.children.each(func(kid *node) { below = append(below, kid) })
		for _, kid := range below {
			t.detach(kid, path+"/"+string(kid.name()))
		}
	}
	parent := n.parent
	if parent.children.remove(n); parent.children.len() == 0 {
		parent.children = nil
	}
	n.parent = nil
	if n == t.quotas {
		t.quotas = nil
	}
	t.nodes--
	t.bytes -= int64(len(path) + n.dataLen())
	t.digest -= t.sum(n)
	t.acls.release(n.acl)
	t.account(path, -1, -int64(n.dataLen()))
	switch k, _ := t.o.kindOf(n.owner); k {
	case kindContainer:
		t.containers.remove(n)
	case kindTTL:
		t.ttls.remove(n)
	case kindEphemeral:
		t.ephemerals--
		t.disown(n)
	}
}

// pathLen returns the length of a znode's path; 0 for the root.
func (t *Tree) pathLen(n *node) (size int) {
	for p := n; p != t.root; p = p.parent {
		size += 1 + p.nameLen()
	}
	return size
}

// path returns the path of a znode.
func (t *Tree) path(n *node) string {
	if n == t.root {
		return "/"
	}
	size := t.pathLen(n)
	b := make([]byte, size)
	for p := n; p != t.root; p = p.parent {
		size -= p.nameLen()
		copy(b[size:], p.name())
		size--
		b[size] = '/'
	}
	return string(b)
}
