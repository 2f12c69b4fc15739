package server

import (
	"encoding/binary"

	"bellwether/internal/metrics"
	"bellwether/wire"
)

// stages are the metrics of the stages of a write. ZooKeeper has a thread and a queue for
// each stage. Here the loop takes all waiting requests as one batch, and the log writer
// takes another batch. So the requests of a batch share its times: each waits for the whole
// batch, and the working time is divided evenly among them.
type stages struct {
	prepared  *metrics.Counter // requests that this server turned into transactions or refused
	prepQueue *metrics.Summary // number of requests in a batch
	prepTime  *metrics.Summary
	forwarded *metrics.Summary // number of a learner's requests in a batch

	logged   *metrics.Counter // transactions passed to the log writer
	logQueue *metrics.Summary // number of transactions in a batch
	logWait  *metrics.Summary // time until the log writer takes them
	logWrite *metrics.Summary // share of a transaction in the time to append and fsync its batch
	flush    *metrics.Summary // time of the fsync

	unclaimed *metrics.Counter // answers whose connection was gone

	watchers [5]*metrics.Summary // number of watchers of a change, by the type of its event
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

// fired counts a change for which n connections had a watch.
func (t *stages) fired(typ wire.EventType, n int) { t.watchers[typ].Observe(int64(n)*metrics.Unit, 1) }

// stepped counts n requests of a batch, which took ns nanoseconds to step.
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

// written counts n transactions that waited, and then were appended and fsynced together.
// Both times are in ns.
func (t *stages) written(n, waited, took int64) {
	t.logQueue.Observe(n*metrics.Unit, 1)
	t.logWait.Observe(micro(waited), n)
	t.logWrite.Observe(micro(took/n), n)
}

// txnTime is the offset of the time in an encoded transaction, after session, cxid and
// zxid.
const txnTime = 8 + 4 + 8

// madeAt returns when the leader made a transaction, in ms of its wall clock. It returns
// false if the bytes are too short.
func madeAt(txn []byte) (ms int64, ok bool) {
	if len(txn) < txnTime+8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(txn[txnTime:])), true
}
