package peer

import (
	"sync/atomic"

	"bellwether/internal/peerwire"
)

// Traffic describes what has passed over a link, as seen by one end.
type Traffic struct {
	BeganMS int64 // when the link was opened, in ms since 1970

	Received int64 // packets
	Sent     int64 // packets
	Requests int64 // packets received that are requests of clients

	Queued      int // packets that the writer has not taken yet
	QueuedBytes int // memory of the packets that are queued or being written
}

// traffic counts the packets of a link.
type traffic struct{ received, sent, requests atomic.Int64 }

// arrived counts packets that were read.
func (t *traffic) arrived(batch []*peerwire.QuorumPacket) {
	t.received.Add(int64(len(batch)))
	requests := int64(0)
	for _, p := range batch {
		if p.Type == peerwire.PacketRequest {
			requests++
		}
	}
	if requests > 0 {
		t.requests.Add(requests)
	}
}

func (t *traffic) reset() {
	t.received.Store(0)
	t.sent.Store(0)
	t.requests.Store(0)
}

// Traffic returns the traffic of a link since it was opened or its counters were reset. ok is
// false if the link has ended. It may be called at any time.
func (l *Links) Traffic(id peerwire.LinkID) (t Traffic, ok bool) {
	k := l.link(id)
	if k == nil {
		return Traffic{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return Traffic{
		BeganMS: k.began.UnixMilli(), Received: k.traffic.received.Load(), Sent: k.traffic.sent.Load(), Requests: k.traffic.requests.Load(),
		Queued: len(k.queue), QueuedBytes: k.waiting,
	}, true
}

// ResetTraffic sets the counters of a link to 0. It may be called at any time.
func (l *Links) ResetTraffic(id peerwire.LinkID) {
	if k := l.link(id); k != nil {
		k.traffic.reset()
	}
}
