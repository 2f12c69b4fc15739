package server

import (
	"sync"

	"bellwether/internal/record"
	"bellwether/internal/store"
)

// applier passes what the store reads to another sink. It applies the transactions of a long log in a goroutine
// of its own, so that one processor reads and decodes the log while another one changes the tree. The caller must
// call finish after the load.
type applier struct {
	store.Sink
	batch []*record.Txn      // read, and not applied or queued yet
	bytes int                // about the size of batch
	queue chan []*record.Txn // nil: the goroutine does not run
	ended sync.WaitGroup
	err   error // the first error of the sink; the goroutine owns it while it runs
}

// A batch goes to the goroutine when it has applyTxns transactions or applyBytes bytes of data. One batch is
// applied and applyQueue batches wait while the next one is read.
const (
	applyTxns  = 256
	applyBytes = 1 << 20
	applyQueue = 2
)

// Reset drops everything loaded so far, because the load begins anew.
func (a *applier) Reset() {
	_ = a.finish() // an error concerns only what is dropped
	a.Sink.Reset()
}

// Txn takes a transaction. An error of the sink is returned by finish.
func (a *applier) Txn(t *record.Txn) error {
	a.batch = append(a.batch, t)
	a.bytes += dataLen(t)
	if len(a.batch) < applyTxns && a.bytes < applyBytes {
		return nil
	}
	if a.queue == nil {
		a.queue = make(chan []*record.Txn, applyQueue)
		a.ended.Go(a.run)
	}
	a.queue <- a.batch
	a.batch, a.bytes = make([]*record.Txn, 0, applyTxns), 0
	return nil
}

// dataLen returns about how many bytes of data a transaction has. A multi counts as a whole batch.
func dataLen(t *record.Txn) int {
	switch b := t.Body.(type) {
	case *record.CreateTxn:
		return len(b.Data)
	case *record.CreateContainerTxn:
		return len(b.Data)
	case *record.CreateTTLTxn:
		return len(b.Data)
	case *record.SetDataTxn:
		return len(b.Data)
	case *record.MultiTxn:
		return applyBytes
	}
	return 0
}

// run applies what is queued until the queue is closed.
func (a *applier) run() {
	for {
		batch, ok := <-a.queue
		if !ok {
			return
		}
		a.apply(batch)
	}
}

func (a *applier) apply(batch []*record.Txn) {
	for _, t := range batch {
		if a.err == nil {
			a.err = a.Sink.Txn(t)
		}
	}
}

// finish applies what is not applied yet, ends the goroutine, and returns the first error of the sink for a
// transaction.
func (a *applier) finish() error {
	if a.queue != nil {
		close(a.queue)
		a.ended.Wait()
		a.queue = nil
	}
	a.apply(a.batch)
	err := a.err
	a.batch, a.bytes, a.err = nil, 0, nil
	return err
}

// loadInto reads the history of the disk into a sink.
func (s *Server) loadInto(sink store.Sink) (store.LoadResult, error) {
	a := &applier{Sink: sink}
	res, err := s.store.Load(a)
	if applied := a.finish(); err == nil {
		err = applied
	}
	return res, err
}
