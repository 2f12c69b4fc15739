package server

import (
	"errors"
	"slices"
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/wire"
)

// zxidSink keeps the zxids of the transactions since the last Reset, and fails at one of them.
type zxidSink struct {
	store.Discard
	zxids  []wire.Zxid
	failAt wire.Zxid
}

var errRefused = errors.New("refused")

func (s *zxidSink) Reset() { s.zxids = nil }

func (s *zxidSink) Txn(t *record.Txn) error {
	if t.Zxid == s.failAt {
		return errRefused
	}
	s.zxids = append(s.zxids, t.Zxid)
	return nil
}

// zxidsTo returns 1, 2, … n.
func zxidsTo(n int) (all []wire.Zxid) {
	for z := range n {
		all = append(all, wire.Zxid(z+1))
	}
	return all
}

// TestApplier: the sink gets every transaction once and in order, whether or not the goroutine runs, and nothing
// after a transaction that it refuses. Reset drops what came before it, also an error.
func TestApplier(t *testing.T) {
	big := make([]byte, applyBytes)
	load := func(a *applier, n int, data []byte) {
		for _, z := range zxidsTo(n) {
			if err := a.Txn(&record.Txn{TxnHeader: record.TxnHeader{Zxid: z}, Body: &record.SetDataTxn{Data: data}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		txns   int
		data   []byte
		batch  int // transactions that are not queued after the last one
		failAt wire.Zxid
	}{
		{"short", applyTxns - 1, nil, applyTxns - 1, 0},
		{"long", 7*applyTxns + 5, nil, 5, 0},
		{"large", 10, big, 0, 0},
		{"refused in the goroutine", 7*applyTxns + 5, nil, 5, 3 * applyTxns},
		{"refused at the end", 2*applyTxns + 5, nil, 5, 2*applyTxns + 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink := &zxidSink{failAt: tt.failAt}
			a := &applier{Sink: sink}
			for range 2 {
				a.Reset()
				load(a, tt.txns, tt.data)
				if len(a.batch) != tt.batch {
					t.Errorf("%d transactions are not queued, want %d", len(a.batch), tt.batch)
				}
			}
			want, wantErr := zxidsTo(tt.txns), error(nil)
			if tt.failAt > 0 {
				want, wantErr = zxidsTo(int(tt.failAt)-1), errRefused
			}
			if err := a.finish(); err != wantErr {
				t.Errorf("error %v, want %v", err, wantErr)
			}
			if !slices.Equal(sink.zxids, want) {
				t.Errorf("%d transactions, want %d in order", len(sink.zxids), len(want))
			}
			if err := a.finish(); err != nil || !slices.Equal(sink.zxids, want) {
				t.Errorf("a second end: error %v, %d transactions", err, len(sink.zxids))
			}
		})
	}
}
