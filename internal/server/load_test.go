package server

import "testing"

// TestLoadText shows what the log says about a long load, also if more is read than expected or
// the expected size is not known.
func TestLoadText(t *testing.T) {
	for _, tc := range []struct {
		read, total int64
		want        string
	}{
		{0, 10 << 20, "loading: 0% of 10 MiB read"},
		{5 << 20, 10 << 20, "loading: 50% of 10 MiB read"},
		{30 << 20, 10 << 20, "loading: 99% of 10 MiB read"},
		{1 << 20, 0, "loading: 1 MiB read"},
		{1, 2, "loading: 50% of 1 MiB read"},
	} {
		if got := loadText(tc.read, tc.total); got != tc.want {
			t.Errorf("%d of %d: %q, want %q", tc.read, tc.total, got, tc.want)
		}
	}
}
