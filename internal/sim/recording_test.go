package sim

import (
	"reflect"
	"testing"
)

// TestRecordingsAreTheSame checks that a seed gives the same recording each time.
func TestRecordingsAreTheSame(t *testing.T) {
	for seed := range uint64(5) {
		var runs [2]*Recording
		for i := range runs {
			var err error
			if runs[i], err = Record(seed+1, 2, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(runs[0], runs[1]) {
			t.Errorf("seed %d gives two recordings", seed+1)
		}
	}
}
