package testports

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestBlocks: two processes never find the same port, and one finds all of its
// own before it finds one again.
func TestBlocks(t *testing.T) {
	const n = each - 1
	ports, err := Free("127.0.0.1", n)
	if err != nil {
		t.Fatal(err)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(ports)))) != n {
		t.Fatalf("a port was found twice among %v", ports)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOther$")
	cmd.Env = append(os.Environ(), "TESTPORTS_OTHER=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	other, err := strconv.Atoi(line)
	if err != nil || slices.Contains(ports, other) {
		t.Fatalf("the other process found %q, %v", line, err)
	}
}

// TestOther is the other process of TestBlocks; alone it says which port it found.
func TestOther(t *testing.T) {
	ports, err := Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TESTPORTS_OTHER") != "" {
		os.Stdout.WriteString(strconv.Itoa(ports[0]) + "\n")
	}
}
