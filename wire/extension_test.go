package wire

import "testing"

// An extension is found behind a record and nowhere else; anything that is
// not one is passed over.
func TestFindExtension(t *testing.T) {
	want := Extension{Version: 1, LeaseMS: 500}
	data := Append(Append(nil, &LearnerInfo{Server: 3, Version: QuorumVersion}), &want)
	if got, ok := FindExtension(data, LearnerInfoLen); !ok || got != want {
		t.Errorf("%+v %v", got, ok)
	}
	var info LearnerInfo
	if err := Decode(data, &info); err != nil || info.Server != 3 {
		t.Errorf("the record in front: %+v, %v", info, err)
	}
	spoiled := append([]byte(nil), data...)
	spoiled[LearnerInfoLen]++
	for _, bad := range [][]byte{nil, data[:LearnerInfoLen], data[:len(data)-1], spoiled,
		Append(data[:LearnerInfoLen:LearnerInfoLen], &Extension{})} {
		if got, ok := FindExtension(bad, LearnerInfoLen); ok {
			t.Errorf("%x: %+v", bad, got)
		}
	}
}
