package quota

import "testing"

// TestParse: the quotas of every version of ZooKeeper are read, and other texts are
// refused.
func TestParse(t *testing.T) {
	none := None()
	for text, want := range map[string]Quota{
		"count=1,bytes=2": {1, 2, -1, -1},
		"count=10,bytes=1000=;byteHardLimit=2000;countHardLimit=-1": {10, 1000, -1, 2000},
		"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=5":      {-1, -1, 5, -1},
		"byteHardLimit=7;countHardLimit=8;count=-1,bytes=9":         {-1, 9, 8, 7},
		"bytes=7;count=8,other=9":                                   {8, 7, -1, -1},
		"":                                                          none, ",;": none, "other=1": none, "=5": none, "count==5": none,
		"count=+3,;bytes=4=;;count=05,": {5, 4, -1, -1},
		"countHardLimit=1=x":            {-1, -1, 1, -1},
	} {
		if got, ok := Parse(text); got != want || !ok {
			t.Errorf("%q: %+v %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"nonsense", "count", "count=", "=", "count=1,bytes", "count=x,bytes=2", "count=1,bytes=x", ",count=1", "count= 1", "count=1.5",
		"count=9223372036854775808", "count=0x1", "count=1_0", "\xff",
	} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestTextComesBack shows that both texts are read as what was written.
func TestTextComesBack(t *testing.T) {
	q := Quota{1, 2, 3, 4}
	if got, ok := Parse(q.Limits()); got != q || !ok {
		t.Errorf("limits %s: %+v %v", q.Limits(), got, ok)
	}
	if got, ok := Parse(q.Usage()); got != (Quota{1, 2, -1, -1}) || !ok {
		t.Errorf("usage %s: %+v %v", q.Usage(), got, ok)
	}
}
