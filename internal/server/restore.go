package server

import (
	"errors"
	"fmt"
	"io"
	"time"

	"bellwether/internal/metrics"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// The reasons for which Restore does nothing.
var (
	ErrRestoreMember = errors.New("a member of an ensemble cannot be restored while it runs, because the other members would keep another history: stop all members, set aside the files snapshot.* and log.* of their directories version-2 (also below dataLogDir), put the snapshot into version-2 below each dataDir under the name snapshot.ZXID (the header last_zxid without 0x), and start all members")
	ErrRestoring     = errors.New("another restore is in process: wait until it has ended")
	ErrNotRestored   = errors.New("nothing is restored")
)

// restoreRequest asks the log writer to replace the history by a restored tree.
type restoreRequest struct {
	made    *tree.Tree
	loader  *tree.Loader // of made, which is not finished
	reaches wire.Zxid    // the last transaction whose effects made contains
	done    chan<- error
}

// Restore replaces the history of a standalone server by an uncompressed snapshot, and
// returns the zxid after which the restored history goes on. That zxid begins an epoch above
// every epoch that the old history or the snapshot has used, so that no client sees a smaller
// zxid than before, and no fencing token is given out twice. All connections are closed; the sessions in the
// snapshot are open again for their full timeouts.
//
// Nothing changes until the snapshot has been read and found complete. Then the loop stops until
// the new history is durable. A crash leaves either the old or the new history. The old
// files stay until they are purged.
func (s *Server) Restore(r io.Reader) (wire.Zxid, error) {
	switch {
	case s.member != nil:
		return 0, ErrRestoreMember
	case !s.serving.Load():
		return 0, ErrNotServing
	case !s.restoring.CompareAndSwap(false, true):
		return 0, ErrRestoring
	}
	defer s.restoring.Store(false)
	start := s.clock()
	made := s.newTree()
	loader := made.Loader()
	reaches, err := store.DecodeUnnamed(r, loader)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotRestored, err)
	}
	s.logObservations(made)
	result := make(chan error, 1)
	s.ask(func(l *loop) { result <- l.restore(made, loader, reaches) })
	select {
	case err = <-result:
	default:
		err = ErrNotServing
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotRestored, err)
	}
	z := made.LastZxid()
	took := time.Duration(s.clock() - start)
	s.stats.onDemand.RestoreTime.Observe(took.Milliseconds()*metrics.Unit, 1)
	s.log.Warn("the history was replaced by a snapshot that an operator has sent (command restore)", "reaches", reaches, "zxid", z, "nodes", made.Counts().Nodes, "after", took)
	return z, nil
}

// restore carries out Restore on the loop.
func (l *loop) restore(made *tree.Tree, loader *tree.Loader, reaches wire.Zxid) error {
	s := l.srv
	done := make(chan error, 1)
	select {
	case s.restores <- restoreRequest{made, loader, reaches, done}:
	case <-s.dead:
		return ErrNotServing
	}
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-s.dead:
		return ErrNotServing
	}
	for _, c := range l.conns { // no client may see the new tree on a connection that has seen the old one
		c.finishLater()
	}
	s.tree.Store(made)
	l.replica.Restore(made)
	return nil
}

// restore makes a restored history durable: first the epoch, then the snapshot.
func (w *logWriter) restore(q *restoreRequest) error {
	s := w.srv
	defer s.disk.whole()()
	if w.full {
		return errors.New(noSpace)
	}
	epochs, err := s.store.Epochs()
	if err != nil {
		return err
	}
	z := wire.MakeZxid(max(s.store.LastZxid().Epoch(), q.reaches.Epoch(), epochs.Accepted, epochs.Current)+1, 0)
	q.loader.Continue(z)
	for _, p := range q.loader.Finish() {
		s.log.Warn("ephemeral of a session that does not exist is removed", "path", p)
	}
	_, err = s.historyLock.revise(func() (*tree.Tree, error) {
		if err := errors.Join(s.store.SetAcceptedEpoch(z.Epoch()), s.store.SetCurrentEpoch(z.Epoch())); err != nil {
			return nil, err
		}
		file, err := s.store.InstallSnapshot(z, q.made.Snapshot())
		if err != nil {
			return nil, err
		}
		s.noteSnapshot(file)
		return q.made, nil
	})
	var poisoned *store.PoisonedError
	if errors.As(err, &poisoned) {
		w.broken(err)
	}
	if err == nil {
		w.snaps.draw()
	}
	return err
}
