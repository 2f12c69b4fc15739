package server

import (
	"encoding/binary"

	"bellwether/internal/metrics"
	"bellwether/wire"
)

// stages are the figures of what a write goes through. ZooKeeper has a thread
// and a queue for each stage; here the loop takes all that waits as one batch,
// and the log writer another, so a time is that of the batch, shared by all in
// it.
type stages struct {
	prepared  *metrics.Counter // requests that became transactions, or were refused, here
	prepQueue *metrics.Summary // of them at a time
	prepTime  *metrics.Summary
	forwarded *metrics.Summary // a learner's requests at a time

	logged   *metrics.Counter // transactions handed to the log writer
	logQueue *metrics.Summary // of them at a time
	logWait  *metrics.Summary // until the log writer takes them
	logWrite *metrics.Summary // to append and sync one
	flush    *metrics.Summary // to sync

	unclaimed *metrics.Counter // answers whose connection was gone

	watchers [5]*metrics.Summary // who heard of a change, by the type of its event
}

func newStages(r *metrics.Registry) stages {
	return stages{
		prepared: r.Counter("prep_processor_request_queued"), prepQueue: r.Basic("prep_processor_queue_size"),
		prepTime: r.Basic("prep_process_time"), forwarded: r.Basic("learner_request_processor_queue_size"),
		logged: r.Counter("sync_processor_request_queued"), logQueue: r.Basic("sync_processor_queue_size"),
		logWait: r.Advanced("sync_processor_queue_time_ms"), logWrite: r.Basic("sync_process_time"),
		flush: r.Advanced("sync_processor_queue_flush_time_ms"), unclaimed: r.Counter("stale_replies"),
		watchers: [5]*metrics.Summary{
			wire.EventNodeCreated: r.Basic("node_created_watch_count"), wire.EventNodeDeleted: r.Basic("node_deleted_watch_count"),
			wire.EventNodeDataChanged: r.Basic("node_changed_watch_count"), wire.EventNodeChildrenChanged: r.Basic("node_children_watch_count"),
		},
	}
}

// fired accounts for a change that n connections watched for.
func (t *stages) fired(typ wire.EventType, n int) { t.watchers[typ].Observe(int64(n)*metrics.Unit, 1) }

// stepped accounts for n requests of a batch, which took ns to step.
func (t *stages) stepped(n, ns int64, decides bool) {
	switch {
	case n == 0:
	case decides:
		t.prepared.Add(n)
		t.prepQueue.Observe(n*metrics.Unit, 1)
		t.prepTime.Observe(micro(ns/n), n)
	default:
		t.forwarded.Observe(n*metrics.Unit, 1)
	}
}

// written accounts for n transactions that waited and were then appended and
// synced together, each time in ns.
func (t *stages) written(n, waited, took int64) {
	t.logQueue.Observe(n*metrics.Unit, 1)
	t.logWait.Observe(micro(waited), n)
	t.logWrite.Observe(micro(took/n), n)
}

// txnTime is where the time stands in an encoded transaction: behind session,
// cxid and zxid.
const txnTime = 8 + 4 + 8

// madeAt is when the leader made a transaction, in ms of its wall clock; false:
// it cannot be read.
func madeAt(txn []byte) (ms int64, ok bool) {
	if len(txn) < txnTime+8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(txn[txnTime:])), true
}
