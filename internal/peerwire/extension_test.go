package peerwire_test

import (
	"bytes"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// TestFindExtension: an extension is found only after a record. Bytes that are no extension are ignored.
func TestFindExtension(t *testing.T) {
	want := peerwire.Extension{Version: 1, LeaseMS: 500}
	data := wire.Append(wire.Append(nil, &peerwire.LearnerInfo{Server: 3, Version: peerwire.QuorumVersion}), &want)
	if got, ok := peerwire.FindExtension(data, peerwire.LearnerInfoLen); !ok || got != want {
		t.Errorf("%+v %v", got, ok)
	}
	var info peerwire.LearnerInfo
	if err := wire.Decode(data, &info); err != nil || info.Server != 3 {
		t.Errorf("the record in front: %+v, %v", info, err)
	}
	spoiled := append([]byte(nil), data...)
	spoiled[peerwire.LearnerInfoLen]++
	for _, bad := range [][]byte{nil, data[:peerwire.LearnerInfoLen], data[:len(data)-1], spoiled,
		wire.Append(data[:peerwire.LearnerInfoLen:peerwire.LearnerInfoLen], &peerwire.Extension{})} {
		if got, ok := peerwire.FindExtension(bad, peerwire.LearnerInfoLen); ok {
			t.Errorf("%x: %+v", bad, got)
		}
	}
}

// TestDigestExample: the bytes of the example in docs/formats/quorum.md.
func TestDigestExample(t *testing.T) {
	for want, data := range map[string]wire.Record{
		"000003ec 0000000100000007 0000000c 00000001 0000000000000000 ffffffff":                           &peerwire.TreeOrder{Task: peerwire.TreeReportDue},
		"000003ec 0000000100000007 00000017 0000000100000003 00 00 01 00000002 00000001772b930a ffffffff": &peerwire.TreeReport{Differs: 0x100000003, Known: true, Version: 2, Digest: 0x1772b930a},
	} {
		p := peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: 0x100000007, Data: wire.Append(nil, data)}
		if got := wire.Append(nil, &p); !bytes.Equal(got, wiretest.BytesOf(t, want)) {
			t.Errorf("%T is\n%x, want\n%s", data, got, want)
		}
	}
	for task := peerwire.TreeReportDue - 1; task <= peerwire.TreeWrongAgain+1; task++ {
		err := wire.Decode(wire.Append(nil, &peerwire.TreeOrder{Task: task}), new(peerwire.TreeOrder))
		if known := task >= peerwire.TreeReportDue && task <= peerwire.TreeWrongAgain; (err == nil) != known {
			t.Errorf("task %d: %v", task, err)
		}
	}
}
