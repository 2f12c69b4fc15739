package sim

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// setTxn returns a transaction that differs from others by its mark.
func setTxn(z wire.Zxid, mark string) *record.Txn {
	return &record.Txn{
		TxnHeader: record.TxnHeader{Session: 1, Cxid: int32(z.Counter()), Zxid: z, Type: wire.OpSetData},
		Body:      &record.SetDataTxn{Path: "/zookeeper", Data: []byte(mark)},
	}
}

func z(epoch wire.Epoch, counter uint32) wire.Zxid { return wire.MakeZxid(epoch, counter) }

// TestRefusedRemovalIsUndone checks that transactions which a disk refused to remove are still
// part of the server's history, also if the zxid of a leader's snapshot is below theirs. A
// removal that was carried out stays.
func TestRefusedRemovalIsUndone(t *testing.T) {
	var tail []*record.Txn
	for i := range uint32(3) {
		tail = append(tail, setTxn(z(8, i+1), "x"))
	}
	for _, c := range []struct {
		name     string
		duties   []replica.Duty
		carried  int // number of truncations and installations carried out
		end      wire.Zxid
		knowsAll bool
	}{
		{"a snapshot below the tail, refused", []replica.Duty{{Install: &zab.Install{Zxid: z(8, 0)}}}, 0, z(8, 3), true},
		{"and carried out", []replica.Duty{{Install: &zab.Install{Zxid: z(8, 0)}}}, 1, z(8, 0), false},
		{"a snapshot above the tail, lost", []replica.Duty{{Install: &zab.Install{Zxid: z(9, 5)}}}, 0, z(8, 3), true},
		{"and on the disk that lost its power", []replica.Duty{{Install: &zab.Install{Zxid: z(9, 5)}}}, 0, z(9, 5), false},
		{"a truncation, refused", []replica.Duty{{Truncate: &zab.Truncate{Zxid: z(8, 1)}}}, 0, z(8, 3), true},
		{"and carried out", []replica.Duty{{Truncate: &zab.Truncate{Zxid: z(8, 1)}}}, 1, z(8, 1), false},
		{"a truncation and a snapshot, both refused",
			[]replica.Duty{{Truncate: &zab.Truncate{Zxid: z(8, 1)}}, {Install: &zab.Install{Zxid: z(9, 5)}}}, 0, z(8, 3), true},
		{"the first of them carried out",
			[]replica.Duty{{Truncate: &zab.Truncate{Zxid: z(8, 1)}}, {Install: &zab.Install{Zxid: z(9, 5)}}}, 1, z(8, 1), false},
	} {
		v := &server{}
		v.recordDuty(&replica.Duty{Append: tail})
		for i := range c.duties {
			v.recordDuty(&c.duties[i])
		}
		for range c.carried {
			v.removalDone()
		}
		if v.endsAt(c.end); (len(v.undelivered) == len(tail)) != c.knowsAll {
			t.Errorf("%s: it knows %d transactions of %d", c.name, len(v.undelivered), len(tail))
		}
		if n := len(v.undelivered); n > 0 && v.undelivered[n-1].Zxid != c.end {
			t.Errorf("%s: it ends at %v", c.name, v.undelivered[n-1].Zxid)
		}
	}
}
