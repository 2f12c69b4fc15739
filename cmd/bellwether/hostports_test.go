package main

import (
	"slices"
	"strings"
	"testing"
)

// TestHostPorts shows which lists of servers are accepted, and that an error names the flag and the entry.
func TestHostPorts(t *testing.T) {
	all, err := hostPorts("--old", " zk1:2181, [::1]:2181,10.0.0.1:1 ")
	if want := []string{"zk1:2181", "[::1]:2181", "10.0.0.1:1"}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%q, %v", all, err)
	}
	for list, entry := range map[string]string{
		"zk1:2181,": "", "zk1:2181,,zk2:2181": "", "zk1:2181, zk2": "zk2", "127.0.0.1": "127.0.0.1", "::1:2181": "::1:2181", ":2181": ":2181",
		"zk1:": "zk1:", "zk1:0": "zk1:0", "zk1:65536": "zk1:65536", "zk1:http": "zk1:http",
	} {
		if _, err := hostPorts("--old", list); err == nil || !strings.HasPrefix(err.Error(), `--old "`+entry+`": want HOST:PORT`) {
			t.Errorf("%q: %v", list, err)
		}
	}
}
