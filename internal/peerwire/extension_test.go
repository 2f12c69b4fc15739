package peerwire_test

import (
	"testing"

	"bellwether/internal/peerwire"
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
