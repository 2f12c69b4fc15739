package recipe

import (
	"context"
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// cacheBatchMax is how many events of the stream are looked at before reading
// what they are about: many changes of one znode are then one read.
const cacheBatchMax = 1024

// chore is what is to be done about a znode.
type chore uint8

const (
	readData chore = 1 << iota
	readChildren
	dropNode
)

// worklist is the chores in the order in which they came up last.
type worklist struct {
	chores map[string]chore
	order  []string // may name a path that is done
}

func (w *worklist) add(path string, c chore) {
	if w.chores == nil {
		w.chores = map[string]chore{}
	}
	before := w.chores[path]
	if before == 0 {
		w.order = append(w.order, path)
	}
	if c == dropNode || before == dropNode {
		before = 0
	}
	w.chores[path] = before | c
}

// run follows the tree until the context ends or the client is over.
func (k *Cache) run(ctx context.Context) {
	defer close(k.done)
	k.todo.add(k.root, readData|readChildren)
	for {
		err := k.follow(ctx)
		switch {
		case ctx.Err() != nil:
			err = zk.ErrClosed
		case k.isGap(err):
			continue
		}
		k.end(err)
		return
	}
}

func (k *Cache) end(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
	for f := range k.feeds {
		if f.err == nil {
			f.err = err
		}
		f.signal()
	}
}

// follow does so for the life of one stream, whose end is its error.
func (k *Cache) follow(ctx context.Context) error {
	if err := awaitConnected(ctx, k.c); err != nil {
		return err
	}
	s, err := k.c.AddWatch(ctx, k.root, wire.WatchPersistentRecursive)
	r := cacheReader{c: k.c, root: k.root, oneShot: errors.Is(err, zk.ErrUnsupported)}
	if r.oneShot {
		s, err = k.c.Listen(k.root)
	}
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
		defer cancel()
		_ = s.Close(ctx) // the server forgets it with the connection at the latest
	}()
	for {
		err := k.catchUp(ctx, s, r)
		switch {
		case err == nil:
			k.inStep()
			err = k.await(ctx, s, r)
		case errors.Is(err, zk.ErrSessionExpired):
			for err = nil; err == nil; { // the stream's last words
				err = k.await(ctx, s, r)
			}
		case errors.Is(err, zk.ErrConnectionLoss) && ctx.Err() == nil:
			continue
		}
		if err != nil {
			k.gap(s.Zxid())
			return err
		}
	}
}

// awaitConnected waits for a connection: whether a server knows persistent watches is
// found out while there is one.
func awaitConnected(ctx context.Context, c *zk.Client) error {
	for s := range c.States(ctx) {
		if err := c.Err(); err != nil {
			return err
		}
		if s.State == zk.Connected || s.State == zk.ReadOnly {
			return nil
		}
	}
	return ctx.Err()
}

// gap notes that changes after zxid may be unknown.
func (k *Cache) gap(zxid wire.Zxid) {
	if !k.behind {
		k.behind, k.since = true, zxid
		k.mu.Lock()
		k.stale = true
		k.mu.Unlock()
	}
}

func (k *Cache) loaded() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

// inStep: everything known to have changed was read.
func (k *Cache) inStep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stale {
		return
	}
	k.stale = false
	if !k.loaded() {
		close(k.ready)
	}
	k.tell(CacheEvent{Type: CacheCurrent})
}

// await waits for an event and takes those that came with it. Next is called
// once for each value of Ready.
func (k *Cache) await(ctx context.Context, s *zk.Stream, r cacheReader) error {
	select {
	case <-s.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	for n := 1; ; n++ {
		e, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if k.note(e, r); n == cacheBatchMax {
			return nil
		}
		select {
		case <-s.Ready():
		default:
			return nil
		}
	}
}

// note makes an event a chore.
func (k *Cache) note(e zk.Event, r cacheReader) {
	if e.Type == wire.EventNone {
		if !r.oneShot { // those were set again, as of what they had seen
			k.gap(e.Zxid)
		}
		return
	}
	if !k.inScope(e.Path) {
		return
	}
	switch e.Type {
	case wire.EventNodeCreated:
		k.todo.add(e.Path, readData|readChildren)
	case wire.EventNodeDataChanged:
		k.todo.add(e.Path, readData)
	case wire.EventNodeChildrenChanged:
		k.todo.add(e.Path, readChildren)
	case wire.EventNodeDeleted:
		k.todo.add(e.Path, dropNode)
		if r.oneShot && e.Path == k.root {
			k.todo.add(e.Path, readData|readChildren) // sets the watch for its return
		}
	}
}

// catchUp asks what a gap has hidden and does the chores, those too that come up.
func (k *Cache) catchUp(ctx context.Context, s *zk.Stream, r cacheReader) error {
	if k.behind {
		events, err := s.Since(ctx, k.since, k.known(), k.knownParents())
		for _, e := range events {
			if r.oneShot || e.Path != k.root {
				k.note(e, r)
			}
		}
		if err == nil && !r.oneShot {
			err = k.lookAtRoot(ctx)
		}
		if err != nil {
			return err
		}
		if len(k.nodes) == 0 {
			k.todo.add(k.root, readData|readChildren)
		}
		k.behind = false
	}
	for len(k.todo.order) > 0 {
		if err := k.work(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// lookAtRoot finds out by its stat whether the root has changed. Since does not
// ask about it, as a persistent watch stands there.
func (k *Cache) lookAtRoot(ctx context.Context) error {
	root := k.nodes[k.root]
	if root == nil {
		return nil
	}
	stat, there, err := k.c.Exists(ctx, k.root)
	switch {
	case err != nil:
		return err
	case !there:
		k.todo.add(k.root, dropNode)
	case stat.Czxid != root.Stat.Czxid:
		k.todo.add(k.root, readData|readChildren)
	default:
		if stat.Mzxid != root.Stat.Mzxid {
			k.todo.add(k.root, readData)
		}
		if stat.Pzxid > k.since {
			k.todo.add(k.root, readChildren)
		}
	}
	return nil
}

// known are all paths held. Run alone writes them, so it reads without a lock.
func (k *Cache) known() []string {
	out := make([]string, 0, len(k.nodes))
	for path := range k.nodes {
		out = append(out, path)
	}
	return out
}

func (k *Cache) knownParents() []string {
	if !k.opt.ChildrenOnly {
		return k.known()
	}
	if k.nodes[k.root] == nil {
		return nil
	}
	return []string{k.root}
}

// work does as many chores as fit into one request. Those that fail stay.
func (k *Cache) work(ctx context.Context, r cacheReader) error {
	n := min(len(k.todo.order), readsMax/2)
	paths := k.todo.order[:n]
	asks := make([]ask, n)
	for i, path := range paths {
		asks[i] = ask{path: path, chore: k.todo.chores[path]}
		if asks[i].chore&readChildren != 0 && !k.lists(path) {
			asks[i].chore &^= readChildren
		}
		if path == k.root && asks[i].chore == readChildren && k.nodes[path] == nil {
			asks[i].chore |= readData
		}
	}
	if err := r.read(ctx, asks); err != nil {
		return err
	}
	for _, path := range paths {
		delete(k.todo.chores, path)
	}
	k.todo.order = k.todo.order[n:]
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range asks {
		if err := k.apply(a); err != nil {
			return err
		}
	}
	return nil
}

// apply takes over what was read of one znode. Cache.mu is held.
func (k *Cache) apply(a ask) error {
	if a.chore == dropNode || a.gone {
		k.drop(a.path)
		return nil
	}
	if a.chore&readData != 0 && !k.put(Node{Path: a.path, Data: a.data, Stat: a.stat}) {
		return nil
	}
	if len(k.nodes) > k.opt.NodesMax || k.bytes > k.opt.BytesMax {
		return &CacheFullError{Root: k.root, NodesMax: k.opt.NodesMax, BytesMax: k.opt.BytesMax}
	}
	n := k.nodes[a.path]
	if a.chore&readChildren == 0 || n == nil {
		return nil
	}
	there := make(map[string]bool, len(a.names))
	for _, name := range a.names {
		if there[name] = true; !n.children[name] {
			k.todo.add(claim.Join(a.path, name), readData|readChildren)
		}
	}
	for _, name := range n.names() {
		if !there[name] {
			k.drop(claim.Join(a.path, name))
		}
	}
	return nil
}

// put adds a znode or replaces it. It reports whether it has a place: its
// parent may be gone by now.
func (k *Cache) put(n Node) bool {
	old := k.nodes[n.Path]
	if old != nil && old.Stat.Czxid != n.Stat.Czxid {
		k.drop(n.Path)
		old = nil
	}
	if old != nil {
		k.bytes += len(n.Data) - len(old.Data)
		if n.Stat.Mzxid != old.Stat.Mzxid {
			k.tell(CacheEvent{Type: NodeChanged, Node: n, Old: old.Node})
		}
		old.Node = n
		return true
	}
	if n.Path != k.root {
		parent := k.nodes[dirOf(n.Path)]
		if parent == nil {
			return false
		}
		parent.children[n.Path[len(claim.Join(dirOf(n.Path), "")):]] = true
	}
	k.nodes[n.Path] = &cached{Node: n, children: map[string]bool{}}
	k.bytes += len(n.Data)
	k.tell(CacheEvent{Type: NodeAdded, Node: n})
	return true
}

// drop removes a znode and what is below it, children first.
func (k *Cache) drop(path string) {
	n := k.nodes[path]
	if n == nil {
		return
	}
	for _, name := range n.names() {
		k.drop(claim.Join(path, name))
	}
	delete(k.nodes, path)
	k.bytes -= len(n.Data)
	if parent := k.nodes[dirOf(path)]; parent != nil && path != k.root {
		delete(parent.children, path[len(claim.Join(dirOf(path), "")):])
	}
	k.tell(CacheEvent{Type: NodeRemoved, Node: n.Node})
}
