package server

import (
	"slices"
	"sync"

	"bellwether/internal/zab"
	"bellwether/wire"
)

// milestones remember when the last transactions passed the stages of a write. Each batch
// adds one mark for each stage. It takes the time from a reading of the clock that it makes
// anyway, so single transactions cost nothing. The description of a slow or traced request
// looks its transaction up here.
//
// The loop owns all fields except those below mu.
type milestones struct {
	proposed timeline                 // the transaction was passed to the log writer, and on a leader proposed
	arrived  timeline                 // a learner received its proposal
	acked    map[zab.LinkID]*timeline // a leader received the learner's ack

	mu      sync.Mutex
	begun   timeline // the fsync began
	durable timeline // the fsync ended
}

func newMilestones() *milestones { return &milestones{acked: map[zab.LinkID]*timeline{}} }

// fsynced records the fsync of all transactions up to last. The log writer calls it.
func (m *milestones) fsynced(last wire.Zxid, begun, ended int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun.add(last, begun)
	m.durable.add(last, ended)
}

// fsync returns when the fsync of a transaction began and ended; 0: not known.
func (m *milestones) fsync(z wire.Zxid) (begun, ended int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun.of(z), m.durable.of(z)
}

// ack records that a learner has everything up to last on its disk.
func (m *milestones) ack(link zab.LinkID, last wire.Zxid, at int64) {
	t := m.acked[link]
	if t == nil {
		t = new(timeline)
		m.acked[link] = t
	}
	t.add(last, at)
}

// forget drops what is known of a learner.
func (m *milestones) forget(link zab.LinkID) { delete(m.acked, link) }

// marksKept is how many marks of a stage are kept at least. Each mark stands for a batch, so they
// cover the last requests even under load.
const marksKept = 256

// timeline holds the marks of one stage, oldest first. Their zxids and times ascend.
type timeline struct{ marks []mark }

// mark says that all transactions up to zxid had passed a stage at a time of the server's clock.
type mark struct {
	zxid wire.Zxid
	at   int64
}

// add adds a mark. Several marks of one time become one.
func (t *timeline) add(z wire.Zxid, at int64) {
	n := len(t.marks)
	switch {
	case n > 0 && z < t.marks[n-1].zxid: // the history was truncated
		t.marks = append(t.marks[:0], mark{z, at})
		return
	case n > 0 && at == t.marks[n-1].at:
		t.marks[n-1].zxid = z
		return
	case n == 2*marksKept:
		t.marks = append(t.marks[:0], t.marks[marksKept:]...)
	}
	t.marks = append(t.marks, mark{z, at})
}

// of returns when a transaction passed the stage; 0: it has not, or that is no longer known.
func (t *timeline) of(z wire.Zxid) int64 {
	i, _ := slices.BinarySearchFunc(t.marks, z, func(m mark, z wire.Zxid) int {
		if m.zxid < z {
			return -1
		}
		return 1
	})
	if i == len(t.marks) || i == 0 && len(t.marks) >= marksKept {
		return 0
	}
	return t.marks[i].at
}
