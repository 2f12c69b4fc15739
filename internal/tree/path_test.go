package tree

import (
	"strings"
	"testing"
)

// TestValidPath: the first block was observed on a 3.8.0 server.
func TestValidPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/...": true, "/a/.b": true, "/a/..b": true, "/a/é": true, "/a\u00a0": true, "/a\uf900": true, "/a\uffef": true,
		"": false, "a": false, "//": false, "/a/": false, "/a//b": false, "/a/.": false, "/a/..": false, "/a/./b": false, "/a/../b": false,
		"/a\x00": false, "/a\x01": false, "/a\x1f": false, "/a\x7f": false, "/a\u009f": false, "/a\ue000": false, "/a\uf8ff": false,
		"/a\ufff0": false, "/a\ufffd": false, "/a\U0001F600": false,

		"/.": false, "/..": false, "/./a": false, "//a": false, "/a\xff": false, "/a\xed\xa0\x80": false, "/a b": true, "/a\u0080": false,
		"/\u4e2d\u6587/x": true, "/a\ud7ff": true, "/" + strings.Repeat("x", 100_000): true,
	} {
		if got := validPath(path); got != want {
			t.Errorf("%q: valid %v, want %v", path, got, want)
		}
	}
}
