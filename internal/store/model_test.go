package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// world is a tree that shows which transactions were applied: each transaction creates
// one znode, named after its zxid, with data that names the transaction's lineage. It is
// a Sink and a Source.
type world struct {
	nodes  map[string][]byte
	last   wire.Zxid
	resets int
}

func newWorld() *world { return &world{nodes: map[string][]byte{}} }

func (w *world) clone() *world { return &world{nodes: maps.Clone(w.nodes), last: w.last} }

func nodeOf(z wire.Zxid) string { return "/" + strconv.FormatUint(uint64(z), 16) }

func (w *world) Reset() {
	clear(w.nodes)
	w.last = 0
	w.resets++
}

func (w *world) Session(wire.SessionID, int32) error { return nil }
func (w *world) ACL(int64, []wire.ACL) error         { return nil }

func (w *world) Node(path string, n *record.DataNode) error {
	if path != "" {
		w.nodes[path] = bytes.Clone(n.Data)
	}
	return nil
}

func (w *world) SnapshotDone(z wire.Zxid, _ *SnapshotDigest) error {
	w.last = z
	return nil
}

func (w *world) Txn(t *record.Txn) error {
	b := t.Body.(*record.CreateTxn)
	w.nodes[b.Path] = b.Data
	w.last = t.Zxid
	return nil
}

func (w *world) Sessions(yield func(wire.SessionID, int32) error) error { return yield(7, 4000) }

func (w *world) ACLs(yield func(int64, []wire.ACL) error) error { return yield(1, wire.OpenACL()) }

func (w *world) Nodes(yield func(string, *record.DataNode) error) error {
	if err := yield("", &record.DataNode{ACL: -1}); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(w.nodes)) {
		if err := yield(path, &record.DataNode{Data: w.nodes[path], ACL: 1}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) Digest() (wire.Zxid, uint64) { return w.last, 0 }

// diff returns how two worlds differ; "" if they do not.
func (w *world) diff(want *world) string {
	if w.last != want.last {
		return fmt.Sprintf("last is %v, want %v", w.last, want.last)
	}
	for path, data := range want.nodes {
		if got, ok := w.nodes[path]; !ok || !bytes.Equal(got, data) {
			return fmt.Sprintf("%s: %d bytes, there: %v; want %d bytes", path, len(got), ok, len(data))
		}
	}
	if len(w.nodes) != len(want.nodes) {
		return fmt.Sprintf("%d nodes, want %d", len(w.nodes), len(want.nodes))
	}
	return ""
}

// txn makes transaction z of a lineage. Sizes vary from a few bytes to several sectors,
// and some data is zeros, which look like a missing sector.
func txn(z wire.Zxid, lineage byte) *record.Txn {
	size := []int{5, 700, 40, 1900, 512, 3}[z%6]
	data := bytes.Repeat([]byte{lineage}, size)
	if z%6 == 3 {
		clear(data[100:1800])
	}
	return &record.Txn{
		TxnHeader: record.TxnHeader{Session: 7, Zxid: z, Time: int64(lineage), Type: wire.OpCreate},
		Body:      &record.CreateTxn{Path: nodeOf(z), Data: data, ACL: wire.OpenACL()},
		Digest:    &record.TxnDigest{Version: 2, Tree: uint64(z)},
	}
}

// driver runs a store. It records the world after each transaction of the current
// history, and how much of the history was acknowledged.
type driver struct {
	m       *Mem
	s       *Store
	opts    Options
	lineage byte
	states  map[wire.Zxid]*world // every state the history went through
	last    wire.Zxid            // the last appended transaction
	acked   wire.Zxid            // the last transaction that was fsynced
	cut     bool                 // a truncation is under way: after a crash the history may also end at later
	later   wire.Zxid
	epochs  [2]wire.Epoch // epochs that were saved
	asked   [2]wire.Epoch // epochs that are being saved
}

func newDriver(m *Mem, o Options) *driver {
	return &driver{m: m, opts: o, lineage: 'a', states: map[wire.Zxid]*world{0: newWorld()}}
}

func (d *driver) start() error {
	var err error
	if d.s, err = Open(d.m, d.opts); err != nil {
		return err
	}
	w := newWorld()
	res, err := d.s.Load(w)
	if err != nil {
		return err
	}
	if res.Empty {
		if _, err := d.s.WriteSnapshot(0, w); err != nil {
			return err
		}
	}
	return nil
}

// add appends transactions without an fsync.
func (d *driver) add(zxids ...wire.Zxid) error {
	var txns []*record.Txn
	for _, z := range zxids {
		t := txn(z, d.lineage)
		w := d.states[d.last].clone()
		if err := w.Txn(t); err != nil {
			return err
		}
		d.states[z], d.last = w, z
		txns = append(txns, t)
	}
	return d.s.Append(txns)
}

func (d *driver) sync() error {
	err := d.s.Sync()
	if err == nil {
		d.acked = d.last
	}
	return err
}

func (d *driver) commit(zxids ...wire.Zxid) error {
	if err := d.add(zxids...); err != nil {
		return err
	}
	return d.sync()
}

func (d *driver) roll() error {
	err := d.s.Roll()
	if err == nil {
		d.acked = d.last
	}
	return err
}

// snapshot writes the present state under the name of an earlier zxid.
func (d *driver) snapshot(z wire.Zxid) error {
	_, err := d.s.WriteSnapshot(z, d.states[d.last])
	return err
}

func (d *driver) truncate(z wire.Zxid) error {
	d.cut, d.later, d.acked = true, d.acked, z
	if err := d.s.Truncate(z); err != nil {
		return err
	}
	d.forget(z)
	_, err := d.s.Load(newWorld())
	return err
}

// forget records that a truncation is complete: nothing after z may be in the history
// again.
func (d *driver) forget(z wire.Zxid) {
	maps.DeleteFunc(d.states, func(at wire.Zxid, _ *world) bool { return at > z })
	d.last, d.acked, d.cut = z, z, false
	d.lineage++
}

// install replaces the history by a leader's history, which ends at z.
func (d *driver) install(z wire.Zxid) error {
	w := d.states[d.acked].clone()
	if err := w.Txn(txn(z, 'Z')); err != nil {
		return err
	}
	d.states[z] = w
	d.cut, d.later = true, z
	if d.acked > z {
		d.later, d.acked = d.acked, z
	}
	if _, err := d.s.InstallSnapshot(z, w); err != nil {
		return err
	}
	d.forget(z)
	return nil
}

func (d *driver) setEpochs(current, accepted wire.Epoch) error {
	d.asked = [2]wire.Epoch{current, accepted}
	if err := d.s.SetAcceptedEpoch(accepted); err != nil {
		return err
	}
	d.epochs[1] = accepted
	if err := d.s.SetCurrentEpoch(current); err != nil {
		return err
	}
	d.epochs[0] = current
	return nil
}

// allowed reports whether the history may end at z after a crash.
func (d *driver) allowed(z wire.Zxid) bool {
	if d.states[z] == nil {
		return false
	}
	if d.cut {
		return z == d.acked || z == d.later || d.acked <= z && z <= d.later
	}
	return d.acked <= z && z <= d.last
}

// verify starts a store on the disk after a crash and compares it with the recorded
// worlds. It returns a driver that continues from there.
func (d *driver) verify(t *testing.T, m *Mem) *driver {
	t.Helper()
	before, err := Check(m, d.opts)
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, damage := range before.Damage {
		t.Errorf("check calls it damage: %v", damage)
	}
	s, err := Open(m, d.opts)
	if err != nil {
		t.Fatalf("open: %v\n%s", err, names(t, m))
	}
	w := newWorld()
	res, err := s.Load(w)
	if err != nil {
		t.Fatalf("load: %v\n%s", err, names(t, m))
	}
	if !d.allowed(res.LastZxid) {
		t.Fatalf("history ends at %v, promised was %v, written %v (cut %v, later %v)\n%s\n%v",
			res.LastZxid, d.acked, d.last, d.cut, d.later, names(t, m), res.Notes)
	}
	if diff := w.diff(d.states[res.LastZxid]); diff != "" {
		t.Fatalf("at %v: %s\n%v", res.LastZxid, diff, res.Notes)
	}
	next := newDriver(m, d.opts)
	next.s, next.lineage = s, d.lineage+1
	next.states = map[wire.Zxid]*world{res.LastZxid: w}
	next.last, next.acked = res.LastZxid, res.LastZxid
	if res.Empty {
		if _, err := s.WriteSnapshot(0, w); err != nil {
			t.Fatal(err)
		}
	}
	next.epochs, next.asked = d.verifyEpochs(t, s), d.asked
	return next
}

func (d *driver) verifyEpochs(t *testing.T, s *Store) [2]wire.Epoch {
	t.Helper()
	e, err := s.Epochs()
	if err != nil {
		t.Fatalf("epochs: %v", err)
	}
	if e.Current < d.epochs[0] || e.Current > max(d.asked[0], d.epochs[0], s.LastZxid().Epoch()) ||
		e.Accepted < d.epochs[1] || e.Accepted > max(d.asked[1], d.epochs[1], s.LastZxid().Epoch()) {
		t.Fatalf("epochs %+v, saved were %v, asked for %v", e, d.epochs, d.asked)
	}
	return [2]wire.Epoch{e.Current, e.Accepted}
}
